"""The pages that tests look at: each kind of page, and those of what may break one."""

from __future__ import annotations

from tests.explorer import hostile
from tests.indexer import making

ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # publishes everything

PAGES = {
    "home": "/",
    "search": "/search?q=weather",
    "search-facets": "/search?domain=weather&q=",
    "search-misspelt": "/search?q=wether+forcast",
    "search-nothing": "/search?q=xyzzyqq",
    "search-uri": "/search?q=did:nuwa:cap:city-weather@1.0.0",
    "triggered": "/triggers?message=what+is+the+weather+in+Oslo",
    "browse": "/browse",
    "domain": "/domain/weather",
    "tag": "/tag/weather",
    "recent": "/recent",
    "browse-voted": "/browse?sort=votes",
    "browse-by-name": "/browse?sort=name",
    "docs": "/docs",
    "package": "/c/city-weather",
    "package-of-many-rights": "/c/forecast/1.1.0",
    "package-yanked": "/c/forecast/1.0.0",
    "package-forged": "/c/forged",
    "package-awaited": "/c/soon",
    "package-signed": "/c/loose",
    "skill": "/c/folder",
    "skill-files": "/c/folder/1.0.0/files",
    "skill-file": "/c/folder/1.0.0/files?path=references/guide.md",
    "skill-binary": "/c/folder/1.0.0/files?path=assets/picture.png",
    "skill-not-kept": f"/c/folder/1.0.0/files?path={hostile.NOT_KEPT}",
    "tools": "/c/city-weather/1.0.0/tools",
    "texts": "/c/city-weather/1.0.0/texts",
    "bytes": "/c/city-weather/1.0.0/bytes",
    "checks": "/c/city-weather/1.0.0/checks?proof",
    "triggers": "/c/city-weather/1.0.0/triggers?message=is+the+weather+good",
    "versions": "/c/unit-converter/versions",
    "diff": "/c/forecast/diff?old=1.0.0&new=1.1.0",
    "history": "/c/forecast/history",
    "block": "/block/1",
    "publisher": f"/p/{ACCOUNT}",
    "signer": f"/p/{making.AUTHOR}",
    "node": "/node?other=0x" + "1" * 64,
    "try": "/try",
    "codes": "/help",
    "code": "/help/NOT_FOUND",
    "missing": "/c/no-such-name",
    "hostile": "/c/naughty-0",
    "hostile-tools": "/c/naughty-0/1.0.0/tools",
    "hostile-texts": "/c/naughty-0/1.0.0/texts",
    "hostile-bytes": "/c/naughty-0/1.0.0/bytes",
    "hostile-triggers": "/c/naughty-0/1.0.0/triggers?message=%3Cscript%3Ealert(1)%3C/script%3E",
    "hostile-history": "/c/naughty-1/history",
    "hostile-search": "/search?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
}

# Pages of a package near every limit.
HEAVY = [
    *("/c/heavy", "/c/heavy/1.0.0/tools", "/c/heavy/1.0.0/tools?from=20", "/c/heavy/1.0.0/texts"),
    *("/c/heavy/1.0.0/bytes", "/c/heavy/1.0.0/bytes?from=10", "/c/heavy/1.0.0/checks"),
    *("/c/heavy/1.0.0/triggers?message=x", "/c/heavy/versions", "/c/heavy/history"),
    *("/c/heavy/diff?old=1.0.0&new=1.1.0", "/search?q=heavy", "/recent"),
]

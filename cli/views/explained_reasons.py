"""Cause, remedy and example of each reason of a package, as `capdex explain` shows them."""

from __future__ import annotations

from typing import Final

from capdex.problems import Reason
from cli.views.explained_errors import Explained

_SIGN: Final = "capdex sign weather.acp.yaml"
_SHOW: Final = "capdex validate weather.acp.yaml"

REASONS: Final[dict[Reason, Explained]] = {
    Reason.BAD_EVENT: Explained(
        "A contract other than the capdex registry announced the release, with values that the"
        " protocol does not allow.",
        "Publish with capdex, which sends only valid values.",
        "capdex publish weather.acp.yaml",
    ),
    Reason.BAD_CID: Explained(
        "Two spellings of one CID would name the same bytes, so only one spelling is accepted.",
        "Let publish make the CID, or compute it yourself.",
        "capdex cid weather.acp.yaml",
    ),
    Reason.CID_MISMATCH: Explained(
        "The CID and the sha256 were computed from different files, for example before and after"
        " signing.",
        "Publish a new version, with both values from the signed file.",
        "capdex publish weather.acp.yaml",
    ),
    Reason.NOT_A_FILE: Explained(
        "The upload wrapped the file in a directory, or split it into blocks in a form that nodes"
        " do not read.",
        "Upload the file as one raw block; `publish` does this.",
        "ipfs add --cid-version 1 --raw-leaves weather.acp.yaml",
    ),
    Reason.SHA256_MISMATCH: Explained(
        "The file was changed after its sha256 was announced, or the IPFS node holds another file.",
        "The announcement cannot change: publish the file as a new version.",
        "id: did:nuwa:cap:weather@1.3.1",
    ),
    Reason.ID_MISMATCH: Explained(
        "The file says another name or version than the transaction that announced it.",
        "Set metadata.id to what you publish, sign again and publish a new version.",
        "id: did:nuwa:cap:weather@1.3.1",
    ),
    Reason.VERSION_MISMATCH: Explained(
        "The event carries two versions that differ. The capdex registry cannot send such an"
        " event; another contract did.",
        "Publish through the capdex registry.",
        "capdex publish weather.acp.yaml",
    ),
    Reason.TOO_LARGE: Explained(
        "Every part of a package has a limit, so that nobody pays for a huge one. The whole file"
        " has at most 256 KiB.",
        "Shorten the part named; put long data behind a tool.",
        _SHOW,
    ),
    Reason.NOT_UTF8: Explained(
        "An editor saved the file in another encoding, or with a byte order mark (often on"
        " Windows).",
        "Save it as UTF-8 without BOM.",
        "iconv -f utf-16 -t utf-8 old.acp.yaml > weather.acp.yaml",
    ),
    Reason.FORBIDDEN_CHARACTER: Explained(
        "The file has a character that people cannot see, such as a control character or a mark"
        " that turns the direction of text. Such characters hide text from reviewers.",
        "Delete the character at the place shown; write it as an escape where a value needs it.",
        _SHOW,
    ),
    Reason.YAML_SYNTAX: Explained(
        "A quote is not closed, a tab indents a line, or an indentation does not fit the lines"
        " above. The line shown is where reading stopped; the mistake can be a line earlier.",
        "Correct that line or the one above it. Indent with spaces.",
        'name: "Weather: now and later"',
    ),
    Reason.YAML_FEATURE: Explained(
        "Readers of YAML understand anchors, tags and merge keys differently, and a signature must"
        " mean the same everywhere.",
        "Write the value out where it is used.",
        "parameters: {type: object, properties: {}}",
    ),
    Reason.DUPLICATE_KEY: Explained(
        "Readers would take either the first or the last value.",
        "Remove one of the two.",
        _SHOW,
    ),
    Reason.TOO_DEEP: Explained(
        "Lists and mappings stand in each other more levels deep than readers accept.",
        "Flatten the part named; in a schema use $defs and $ref.",
        '{"$ref": "#/$defs/place"}',
    ),
    Reason.TOO_MANY: Explained(
        "A list has more entries than the format allows, for example more than ten tags.",
        "Remove entries, or make two capabilities of one.",
        "tags: [weather, forecast]",
    ),
    Reason.MISSING_FIELD: Explained(
        "The format requires the field that the message names.",
        "Add it. `init` writes a file that has all of them.",
        "capdex init weather",
    ),
    Reason.WRONG_TYPE: Explained(
        "YAML reads 1.0 as a number and yes as true. Where the format wants text, such a value"
        " needs quotes; where it wants a list, write brackets.",
        "Write the value in the type that the message names.",
        'tags: ["1.0", "yes"]',
    ),
    Reason.UNKNOWN_FIELD: Explained(
        "The key is not of this version of the format: a spelling mistake, a key at the wrong"
        " level, or a key of a newer version.",
        "Correct the spelling or the indentation.",
        "triggers: [{type: keyword, value: forecast}]",
    ),
    Reason.BAD_VALUE: Explained(
        "The value has the right type and is not one that the format allows.",
        "Write one of the values that the message names.",
        'languages: ["en", "zh-Hans"]',
    ),
    Reason.BAD_ID: Explained(
        "A package has one exact version, so metadata.id is a URI with a name and a version. Names"
        " have lower-case letters, digits and hyphens.",
        "Write the URI in this form.",
        "id: did:nuwa:cap:my-weather@1.0.0",
    ),
    Reason.BAD_SCHEMA: Explained(
        "A schema has a keyword with a value that JSON Schema 2020-12 does not allow, such as"
        " required: true in place of a list.",
        "Correct the keyword that the message names.",
        "required: [city]",
    ),
    Reason.BAD_SCHEMA_URI: Explained(
        "The $id of the state schema names the schema and its major version, for whoever stores"
        " objects of it.",
        "Write it in this form.",
        '"$id": "did:nuwa:state:weather#v1"',
    ),
    Reason.BAD_TRIGGER: Explained(
        "A trigger has an unknown type, or a regex that RE2 does not read: RE2 has no"
        " back-references and no look-around.",
        "Write a keyword, an RE2 regex or a phrase to embed.",
        "- {type: regex, value: '(?i)\\b(rain|snow) tomorrow\\b'}",
    ),
    Reason.BAD_TOOL: Explained(
        "A tool is not in the form that OpenAI's function calling uses: a function with a name, a"
        " description and a JSON Schema of its parameters.",
        "Write the tool in this form.",
        "- {type: function, function: {name: get_rain, description: Tells the rain,"
        " parameters: {type: object}}}",
    ),
    Reason.BAD_BINDING: Explained(
        "A binding says how a tool is called. It has an unknown type, or lacks a value that its"
        " type needs, such as a URL.",
        "Write a binding of one of the types in docs/protocol.md P10.",
        "get_rain: {type: http_get, url: 'https://api.weather.dev/rain'}",
    ),
    Reason.UNBOUND_TOOL: Explained(
        "The tool is declared under tools, and nothing says how to call it.",
        "Add a binding under the tool's name, or remove the tool.",
        "get_rain: {type: http_get, url: 'https://api.weather.dev/rain'}",
    ),
    Reason.UNDECLARED_PERMISSION: Explained(
        "The package uses a state.* tool and does not ask for the permission.",
        "Declare it; people see permissions before they install.",
        'permissions: {require: ["state.read"]}',
    ),
    Reason.UNEDITED: Explained(
        "A line is still as `init` wrote it: an address at example.com, or a sentence of the"
        " template. Such a package would do nothing, and a version can never be replaced.",
        "Write your own text and address. A capability without a service needs no tool.",
        "capdex init plain-words --kind prompt --description 'Rewrites a text in plain words.'",
    ),
    Reason.UNKNOWN_REQUIRED: Explained(
        "A schema requires a property that it does not describe, mostly after a spelling mistake"
        " or after a property was renamed.",
        "Write the same name in properties and in required.",
        "{type: object, properties: {city: {type: string}}, required: [city]}",
    ),
    Reason.LINT_OVERRIDE: Explained(
        "The text tells a model to forget what it was told before. Attackers write such text.",
        "Say what the capability does. Quote such words where the text is about them.",
        'prompt: You answer questions about attacks such as "ignore all previous instructions".',
    ),
    Reason.LINT_HIDDEN_TAG: Explained(
        "Models take text in tags such as <IMPORTANT> for orders of their operator.",
        "Write the sentence without the tag.",
        "prompt: Name the place in each answer.",
    ),
    Reason.LINT_SECRECY: Explained(
        "The text tells a model not to tell the user something.",
        "Let the person know, or leave the sentence out.",
        "prompt: Say which service you asked.",
    ),
    Reason.LINT_CONTROL_TOKENS: Explained(
        "Chat templates mark where a message begins and ends with such tokens. In a package they"
        " could end the prompt and begin a false message.",
        "Remove them.",
        _SHOW,
    ),
    Reason.LINT_EXFILTRATION: Explained(
        "The text has a link or an image whose address the model fills in. Opening it would send"
        " the conversation to another host.",
        "Call a tool with a declared binding instead; people see its host before they install.",
        "get_rain: {type: http_get, url: 'https://api.weather.dev/rain'}",
    ),
    Reason.LINT_SECRET_PLACE: Explained(
        "The text names a place where keys and passwords are kept, such as ~/.ssh.",
        "Remove it. A secret that a tool needs is named in its binding's auth.",
        "auth: {type: bearer, secret: WEATHER_API_KEY}",
    ),
    Reason.LINT_FOREIGN_TOOL: Explained(
        "The text gives orders about a tool of another package.",
        "Name only tools of this package.",
        _SHOW,
    ),
    Reason.LINT_CONVERSATION: Explained(
        "The text has the model pass on the whole conversation, or the contents of files.",
        "Name the single values that the tool needs.",
        "prompt: Pass the city and the date to get_forecast.",
    ),
    Reason.LINT_HIDDEN_MARKDOWN: Explained(
        "A comment is not shown where the text is displayed, and a model reads it.",
        "Remove the comment.",
        _SHOW,
    ),
    Reason.LINT_ROLE_PLAY: Explained(
        "The text is written like a message of the system or the assistant, or says that there"
        " are no limits.",
        "Write instructions.",
        "prompt: Answer in one or two sentences.",
    ),
    Reason.LINT_ENCODED: Explained(
        "A long run of base64 or hex cannot be read by people, and a model may decode it.",
        "Put the data behind a tool.",
        _SHOW,
    ),
    Reason.LINT_JAILBREAK: Explained(
        "Many words that jailbreak prompts share stand close together. This is a score, not a"
        " proof.",
        "Say what the capability does in other words.",
        _SHOW,
    ),
    Reason.LINT_DECEPTIVE_NAME: Explained(
        "The display name mixes scripts, such as a Cyrillic letter that looks like a Latin one.",
        "Write each word in one script.",
        'name: "City Weather"',
    ),
    Reason.LINT_SECRET_VALUE: Explained(
        "A parameter or a header is named like a secret. Its value would pass through the model or"
        " stand in a public file.",
        "Name the secret in auth. Its value then stays on the user's machine.",
        "auth: {type: bearer, secret: WEATHER_API_KEY}",
    ),
    Reason.UNSIGNED: Explained(
        "Nothing in the file says who wrote it. Nodes do not serve it as verified.",
        "Sign it. `publish` signs a file that is not signed.",
        _SIGN,
    ),
    Reason.MISSING_AUTHOR: Explained(
        "metadata.signature is there, and metadata.author is not.",
        "Sign again; this writes both.",
        _SIGN,
    ),
    Reason.BAD_AUTHOR: Explained(
        "metadata.author was written by hand or was cut.",
        "Sign again; this writes the author.",
        _SIGN,
    ),
    Reason.UNKNOWN_DID_METHOD: Explained(
        "The author's DID needs a service to find its key. Nodes check signatures without asking"
        " a service.",
        "Sign with a did:key (`keygen`), or with the publishing account.",
        "capdex keygen --out keys/author.json;"
        " capdex sign weather.acp.yaml --author-key keys/author.json",
    ),
    Reason.BAD_SIGNATURE: Explained(
        "The file changed after it was signed: even a space counts. Or another key signed it.",
        "Sign again, as the last step before publishing.",
        _SIGN,
    ),
    Reason.SIGNATURE_ENCODING: Explained(
        "The signature was broken over lines, or written in another encoding.",
        "Sign again; this writes it in the right form.",
        _SIGN,
    ),
    Reason.NOT_BOUND: Explained(
        "The signature is good, but the author did not say which account may publish the file."
        " Without this, others could publish a file that is not theirs.",
        "Sign with the account that publishes named in the file.",
        "capdex sign weather.acp.yaml --publisher 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    ),
    Reason.WORKER_LIMIT: Explained(
        "Checking the package took more time or memory than a node gives to one package. Mostly a"
        " schema is too complex.",
        "Make the schemas and patterns simpler, and publish a new version.",
        _SHOW,
    ),
    Reason.UNAVAILABLE: Explained(
        "No IPFS source that the node knows has the bytes. Your IPFS node may be offline or not"
        " reachable from outside.",
        "Keep it online, or pin the CID with a pinning service. Nodes try again by themselves.",
        "ipfs pin add bafkrei…",
    ),
}

"""Send transactions and wait until they are mined: nonces, replacements, fee caps, restarts.

`submit.submit` signs and sends, `confirm.confirm` waits and repairs, `pending.PendingTransaction`
lets a later process go on, `submit.share_cap` divides one cap among several.
"""

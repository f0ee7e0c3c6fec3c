"""Send transactions and wait until they are mined: nonces, replacements, fee caps, restarts.

`submit.submit` signs and sends, `confirm.confirm` waits and repairs, `pending.PendingTransaction`
lets a later process go on, `fee_cap.share_cap` divides one cap among several.
"""

"""Pay for publications of other accounts (P12): what an author signs, a budget, the service.

author   package ──sign──> SponsorRequest ──JSON──> sponsor   allow list, checks, budget, send
"""

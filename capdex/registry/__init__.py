"""The registry contract off chain: its logs, decoded events and the state they give (P11–P13)."""

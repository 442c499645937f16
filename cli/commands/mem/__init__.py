"""`gitmem mem …`: what agents write down for whoever comes later."""

"""The meanings an operation can have: forward, partial and backward (derivatives), batch, stage,
call.
"""

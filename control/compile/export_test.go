package compile

// Limit lowers the room, so that full tables can be tested.
func (c *Compiler) Limit(frontends, backends int) { c.limit = room{frontends, backends} }

// Quarantine is how many ids rest before one is given out again.
const Quarantine = quarantine

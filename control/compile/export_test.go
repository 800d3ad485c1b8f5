package compile

// Limit lowers the room, so that full tables can be tested.
func (c *Compiler) Limit(frontends, backends int) { c.limit = room{frontends, backends} }

// Quarantine is how many ids rest before one is given out again.
const Quarantine = quarantine

// Recall tells whose each frontend was, which a snapshot does not.
func (c *Compiler) Recall(from *Compiler) {
	for k, f := range c.frontends {
		if was := from.frontends[k]; was != nil {
			f.owner = was.owner
		}
	}
}

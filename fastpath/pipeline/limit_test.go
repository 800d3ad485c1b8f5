package pipeline

import "testing"

// TestLimit: as many answers at once as there are in a second, then one whenever its share of a
// second has gone by; none at a rate of 0.
func TestLimit(t *testing.T) {
	const start = 1000 * second
	type look struct {
		sentence string
		at       int64
		takes    bool
	}
	for _, c := range []struct {
		rate  uint32
		looks []look
	}{
		{0, []look{{"a rate of 0 permits nothing", start, false}, {"nor later", 2 * start, false}}},
		{4, []look{
			{"the first", start, true}, {"the second at once", start, true}, {"the third", start, true}, {"the fourth", start, true},
			{"a fifth is too much", start, false},
			{"just before a quarter of a second is over", start + second/4 - 1, false},
			{"when it is over", start + second/4, true},
			{"one for each quarter", start + second/4, false},
			{"half a second gives two", start + 3*second/4, true}, {"the other", start + 3*second/4, true}, {"and no third", start + 3*second/4, false},
			{"an hour gives no more than a second", 5 * start, true}, {"two", 5 * start, true}, {"three", 5 * start, true}, {"four", 5 * start, true},
			{"no fifth", 5 * start, false},
		}},
	} {
		var l limit
		for _, look := range c.looks {
			if got := l.take(look.at, c.rate); got != look.takes {
				t.Errorf("at %d a second, %s: %v, want %v", c.rate, look.sentence, got, look.takes)
			}
		}
	}
}

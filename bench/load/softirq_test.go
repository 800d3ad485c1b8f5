package load

import "testing"

func TestInterruptTime(t *testing.T) {
	first, err := interruptTime(0)
	if err != nil || first < 0 {
		t.Errorf("%v, %v", first, err)
	}
	if later, err := interruptTime(0); err != nil || later < first {
		t.Errorf("%v after %v, %v", later, first, err)
	}
	if _, err := interruptTime(1 << 20); err == nil {
		t.Error("a processor that does not exist has a time")
	}
}

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lace-cni.io/lace/control/model"
)

// told runs a teller in a bubble and hands the function what it wrote.
func told(t *testing.T, node string, f func(*Teller, *[]*eventsv1.Event)) {
	synctest.Test(t, func(t *testing.T) {
		var written []*eventsv1.Event
		teller := newTeller(node, slog.New(slog.DiscardHandler))
		teller.uid = func(n model.Name) types.UID {
			if n.Name == "gone" {
				return ""
			}
			return types.UID("uid-" + n.Name)
		}
		names := map[string]bool{}
		teller.post = func(_ context.Context, e *eventsv1.Event) error {
			if names[e.Name] {
				return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name)
			}
			names[e.Name] = true
			written = append(written, e)
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- teller.Run(ctx) }()
		f(teller, &written)
		cancel()
		<-done
	})
}

func problem(service, reason string) model.Problem {
	return model.Problem{Kind: "Service", Object: "demo/" + service, Field: "spec.ports", Reason: reason, Message: "wrong; mend it"}
}

func TestAProblemOfAServiceIsToldOnce(t *testing.T) {
	told(t, "n1", func(teller *Teller, written *[]*eventsv1.Event) {
		both := []model.Problem{problem("web", "BadPort"), problem("gone", "BadPort"), {Kind: "Node", Object: "n1", Reason: "NodeMissing"}}
		for range 3 {
			teller.Tell(both)
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(*written) != 1 {
			t.Fatalf("%d Events, want 1", len(*written))
		}
		e := (*written)[0]
		if e.Regarding.UID != "uid-web" || e.Namespace != "demo" || e.Reason != "BadPort" || e.Type != "Warning" ||
			e.ReportingInstance != "n1" || e.Note != "spec.ports: wrong; mend it" || !strings.HasPrefix(e.Name, "web.") {
			t.Errorf("the Event is %+v", e)
		}
	})
}

func TestEventsOfAllNodesHaveOneName(t *testing.T) {
	p := problem("web", "BadPort")
	of := func(node string, p model.Problem) string {
		return newTeller(node, nil).event(p, model.Name{Namespace: "demo", Name: "web"}, "u").Name
	}
	if a, b := of("n1", p), of("n2", p); a != b {
		t.Errorf("two nodes name one Problem %s and %s", a, b)
	}
	if of("n1", p) == of("n1", problem("web", "BadAddress")) {
		t.Error("two Problems have one name")
	}
}

func TestEventsAreWrittenAtABoundedRate(t *testing.T) {
	told(t, "n1", func(teller *Teller, written *[]*eventsv1.Event) {
		var all []model.Problem
		for i := range 500 {
			all = append(all, problem(fmt.Sprintf("s%d", i), "BadPort"))
		}
		teller.Tell(all)
		synctest.Wait()
		if len(*written) != burst {
			t.Errorf("%d Events at once, want %d", len(*written), burst)
		}
		time.Sleep(10*interval + time.Second)
		synctest.Wait()
		if len(*written) != burst+10 {
			t.Errorf("%d Events after %s, want %d", len(*written), 10*interval, burst+10)
		}
		teller.Tell(nil) // what has been mended is not told any more
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(*written) != burst+10 {
			t.Errorf("%d Events, want no more than before", len(*written))
		}
	})
}

func TestANoteFitsTheAPI(t *testing.T) {
	p := problem(strings.Repeat("w", 253), "BadPort")
	p.Message = strings.Repeat("ä", 2000)
	e := newTeller("n1", nil).event(p, model.Name{Namespace: "demo", Name: strings.Repeat("w", 253)}, "u")
	if len(e.Note) > noteSize || strings.ContainsRune(e.Note, '\ufffd') || len(e.Name) > 253 {
		t.Errorf("note of %d bytes %q, name of %d", len(e.Note), e.Note[len(e.Note)-8:], len(e.Name))
	}
}

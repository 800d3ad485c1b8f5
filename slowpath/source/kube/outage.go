package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"lace-cni.io/lace/control/model"
)

// bearable is how long a stream may fail before that is a Problem: a server that
// restarts is none.
const bearable = 5 * time.Second

// outage is what keeps a stream from being read at present. Safe for concurrent use.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero: nothing does
	err   error     // the first of its kind, so that the words stand still
}

// told takes the outcome of an attempt.
func (o *outage) told(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.since, o.err = time.Time{}, nil
	case errors.Is(err, context.Canceled), apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsInvalid(err):
		// The reflector finds another way by itself.
	case o.since.IsZero():
		o.since, o.err = time.Now(), err
	case reasonOf(err) != reasonOf(o.err):
		o.err = err
	}
}

// lasting is the error that has stood for longer than is bearable; nil: none has.
func (o *outage) lasting(now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || now.Sub(o.since) < bearable {
		return nil
	}
	return o.err
}

func reasonOf(err error) string {
	switch {
	case apierrors.IsUnauthorized(err):
		return "Unauthorized"
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsNotFound(err):
		return "NotServed"
	case apierrors.ReasonForError(err) != "":
		return "Refused"
	}
	return "Unreachable"
}

// complaint is the Problem of a stream. What is not reached is not reached for all
// streams alike, so that it has no field.
func complaint(s *stream, err error, servers []string) model.Problem {
	p := model.Problem{Kind: "Source", Object: "kube", Field: s.what, Reason: reasonOf(err)}
	const stands = "what was read last stands"
	switch p.Reason {
	case "Unauthorized":
		p.Field = ""
		p.Message = fmt.Sprintf("the API server does not know who this is, and %s; renew the credentials: %v", stands, err)
	case "Forbidden":
		p.Message = fmt.Sprintf("list and watch of %s are not allowed, and %s; give the agent's account a role that allows them: %v", s.what, stands, err)
	case "NotServed":
		p.Message = fmt.Sprintf("the API server has no %s, and %s; Kubernetes 1.34 or later is needed", s.what, stands)
		if s.kind == "ServiceCIDR" {
			p.Message += ", or the service ranges must be given (--service-cidrs)"
		}
	case "Refused":
		p.Message = fmt.Sprintf("the API server does not give %s, and %s: %v", s.what, stands, err)
	default:
		p.Field = ""
		p.Message = fmt.Sprintf("no API server of %s can be reached, and %s: %v", strings.Join(servers, ", "), stands, bare(err))
	}
	return p
}

// bare leaves out the URL, which is another one for each request.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

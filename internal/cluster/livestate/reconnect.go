package livestate

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"lockstep.run/lockstep/internal/limits"
)

// Reconnect repeats a request for a watch while the API server is away, and while
// one that came back refuses it: it does not know anyone's rights before it has
// read the roles. failed is told each time. Other errors are the caller's: it may
// have to list again. So is a connection that is lost before each of several answers.
//
// client-go would repeat it as well, with pauses that grow to a minute where the
// API server goes away several times within two minutes.
func Reconnect(ctx context.Context, request func() (watch.Interface, error), failed func(error)) (watch.Interface, error) {
	pauses := wait.Backoff{Duration: limits.WatchBackoffMin, Cap: limits.ReconnectMax, Factor: 2, Jitter: 0.2, Steps: 32}
	var lastAway time.Time
	for lost := 0; ; {
		w, err := request()
		if err == nil && reflect.TypeOf(w) == empty && lost < lostMost {
			lost++
			err = errLost
		}
		switch {
		case err == nil:
			return w, nil
		case away(err):
			lastAway = time.Now()
		case apierrors.IsForbidden(err) && time.Since(lastAway) < limits.RolesRead:
		default:
			return nil, err
		}
		failed(err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pauses.Step()):
		}
	}
}

// empty is what client-go makes of a connection that was lost before the answer came;
// who believes it lists again.
var empty = reflect.TypeOf(watch.NewEmptyWatch())

var errLost = errors.New("the connection to the API server was lost before it answered")

// lostMost is how often in a row that is asked for again: by then it is the request.
const lostMost = 5

// away reports whether there was no answer. The 503 that stands for an aggregated API
// server is one: that may be away for long.
func away(err error) bool {
	var transport *url.Error
	return errors.Is(err, errLost) || errors.As(err, &transport)
}

package registry

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

const (
	throttledWait  = 30 * time.Second // by which a registry can delay one request within a pull
	throttledTimes = 5                // number of such delays
)

// throttled repeats a request if the registry, or its token service, limits the rate of requests
// and announces a time. The pull then continues, instead of starting over after an unrelated
// back-off. It leaves a longer wait to the caller, as RetryAfter of the PullError.
func throttled(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := send(r)
		if err != nil {
			return nil, err
		}
		after, limited := retryAfter(resp)
		if !limited {
			return resp, nil
		}
		deadline, bounded := r.Context().Deadline()
		tooLong := after > throttledWait || bounded && time.Until(deadline) < after
		repeatable := r.Body == nil || r.GetBody != nil
		if tooLong || attempt == throttledTimes || !repeatable {
			_ = resp.Body.Close()
			return nil, &failure{
				reason: ReasonUnavailable, details: "the registry limits the rate of requests: it answers " + resp.Status + " and wants none for " + after.String(),
				temporary: true, after: after,
			}
		}
		_, _ = io.CopyN(io.Discard, resp.Body, limits.ResponseHeaderBytes) // so that the connection can be reused
		_ = resp.Body.Close()
		if err := pause(r.Context(), after); err != nil {
			return nil, err
		}
		if r.Body != nil {
			again := r.Clone(r.Context())
			if again.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
			r = again
		}
	}
}

// retryAfter returns the wait that a response requires, which is at least a second.
func retryAfter(resp *http.Response) (after time.Duration, limited bool) {
	text := resp.Header.Get("Retry-After")
	if text == "" || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = time.Until(at).Round(time.Second)
	} else {
		return 0, false
	}
	return max(after, time.Second), true
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

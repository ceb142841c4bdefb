package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/loader/archive"
)

// Reason is why a pull failed.
type Reason string

// Reasons of a PullError.
const (
	ReasonInvalidReference Reason = "invalid image reference"
	ReasonNotFound         Reason = "image not found"
	ReasonUnauthorized     Reason = "unauthorized"
	ReasonTimeout          Reason = "timeout"
	// ReasonUnreachable means that there is no connection, or none that can be trusted.
	ReasonUnreachable Reason = "registry unreachable"
	// ReasonUnavailable means that the registry failed, or requires a later retry.
	ReasonUnavailable      Reason = "registry unavailable"
	ReasonDigestMismatch   Reason = "digest mismatch"
	ReasonLimit            Reason = "limit exceeded"
	ReasonInsecure         Reason = "insecure registry"
	ReasonForbiddenAddress Reason = "forbidden address"
	ReasonInvalidImage     Reason = "invalid image"
	ReasonNotCached        Reason = "image not in the cache"
	ReasonLocal            Reason = "local error"
)

// PullError is a failed pull. Its text contains no credentials.
type PullError struct {
	Ref     string
	Reason  Reason
	Details string
	Remedy  string
	// Temporary is set if the same pull can succeed later without a change.
	Temporary bool
	after     time.Duration
	// Err is the cause if it comes from package archive. Texts of other errors can contain
	// credentials.
	Err error
}

// Error implements error.
func (e *PullError) Error() string {
	s := fmt.Sprintf("pull image %q: %s: %s", e.Ref, e.Reason, e.Details)
	if e.Remedy != "" {
		s = strings.TrimSuffix(s, ".") + ". " + e.Remedy
	}
	return s
}

// Unwrap returns the cause.
func (e *PullError) Unwrap() error { return e.Err }

// RetryAfter is the pause that the registry requests; 0 if it did not specify one.
func (e *PullError) RetryAfter() time.Duration { return e.after }

// failure is why a request failed, before the reference is known to which it belongs.
type failure struct {
	reason          Reason
	details, remedy string
	temporary       bool
	after           time.Duration
}

func (f *failure) Error() string { return f.details }

// failf returns a failure that is not temporary.
func failf(reason Reason, remedy, format string, args ...any) *failure {
	return &failure{reason: reason, details: fmt.Sprintf(format, args...), remedy: remedy}
}

// errPullTimeout is the cause of a session's context after Timeouts.Pull.
var errPullTimeout = errors.New("pull timeout")

// classify turns an error into a PullError, except the caller's cancellation.
func (p *Puller) classify(ctx context.Context, ref string, err error, secrets []string) error {
	if err == nil {
		return nil
	}

	var done *PullError
	if errors.As(err, &done) || errors.Is(err, archive.ErrRoom) || errors.Is(err, errNotAdmitted) {
		return err
	}

	e := &PullError{Ref: safeRef(ref)}
	var (
		own      *failure
		content  *archive.Error
		response *transport.Error
		badCert  *tls.CertificateVerificationError
		badAlert tls.AlertError
		path     *fs.PathError
		link     *os.LinkError
	)

	switch {
	case errors.As(err, &badCert), errors.As(err, &badAlert):
		e.Reason, e.Details = ReasonUnreachable, err.Error()
		e.Remedy = p.certificateRemedy(ref, err)
	case errors.As(err, &own):
		e.Reason, e.Details, e.Remedy, e.Temporary, e.after = own.reason, own.details, own.remedy, own.temporary, own.after
		if own.reason == ReasonLimit && own.remedy == "" {
			e.Remedy = "Ask the administrator of the registry for the reason."
		}
	case errors.Is(context.Cause(ctx), errPullTimeout):
		e.Reason, e.Temporary = ReasonTimeout, true
		e.Details = fmt.Sprintf("the pull took longer than %v", p.opts.Timeouts.Pull)
	case ctx.Err() != nil:
		return fmt.Errorf("pull image %q: %w", e.Ref, context.Cause(ctx))
	case errors.As(err, &content):
		e.Reason, e.Details, e.Err = ReasonInvalidImage, content.Error(), content
		if content.Kind == archive.KindLimit {
			e.Reason = ReasonLimit
		}
	case errors.As(err, &response):
		e.fromResponse(response)
	case isTimeout(err):
		e.Reason, e.Temporary = ReasonTimeout, true
		e.Details = fmt.Sprintf("the registry could not be reached within %v: %v", p.opts.Timeouts.Connect, err)
		if strings.Contains(err.Error(), "awaiting response headers") {
			e.Details = fmt.Sprintf("the registry did not answer within %v", p.opts.Timeouts.Header)
		}
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Reason, e.Details = ReasonInsecure, "the registry answers by plain HTTP only"
		e.Remedy = "Serve it by HTTPS, or name this host by --insecure-registry."
	case errors.As(err, &path), errors.As(err, &link): // of the file system
		e.Reason, e.Details, e.Temporary = ReasonLocal, err.Error(), true
	default:
		e.Reason, e.Details, e.Temporary = ReasonUnreachable, err.Error(), true
	}

	if isOfProxy(err) {
		e.Remedy = proxyRemedy
	}

	e.Details, e.Remedy = outbound.Redact(e.Details, secrets...)+p.redirected(ref), cmp.Or(e.Remedy, remedies[e.Reason])
	return e
}

// remedies apply if there is nothing more specific.
var remedies = map[Reason]string{
	ReasonTimeout:        "Ask the administrator of the registry.",
	ReasonUnreachable:    "Check the host in the image reference, and that it can be reached.",
	ReasonUnavailable:    "Ask the administrator of the registry.",
	ReasonDigestMismatch: "Push the image again, and ask the administrator of the registry.",
}

// certificateRemedy names the host whose certificate does not verify. It is another host than the
// registry's if the registry redirects downloads.
func (p *Puller) certificateRemedy(ref string, err error) string {
	host := ""
	if parsed, parseErr := p.parse(ref); parseErr == nil {
		host = parsed.Context().RegistryStr()
	}
	var request *url.Error
	if errors.As(err, &request) {
		if u, parseErr := url.Parse(request.URL); parseErr == nil {
			host = u.Host
		}
	}
	return "Give its certificate authority: --registry-ca " + outbound.Redact(settingKey(host)) + "=FILE."
}

// isOfProxy reports whether a connection to a proxy failed.
func isOfProxy(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks "))
}

// isTimeout reports whether a wait of the network was too long.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &network) && network.Timeout()
}

// fromResponse sets reason and details by the status. Registries answer missing rights with 404,
// and a missing image with 401, so both remedies name the image and the pull secret.
func (e *PullError) fromResponse(response *transport.Error) {
	e.Details, e.Reason = response.Error(), ReasonUnavailable
	switch code := response.StatusCode; {
	case code == http.StatusNotFound:
		e.Reason, e.Remedy = ReasonNotFound, "Check the name and the tag, and that the pull secret grants access to the image."
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.Reason, e.Remedy = ReasonUnauthorized, "Check the name of the image and the pull secret."
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		e.Temporary = true
	}
}

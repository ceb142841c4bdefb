package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
)

// Reason tells why a pull failed.
type Reason string

// Reasons of a PullError.
const (
	// ReasonInvalidReference says: the reference cannot be read.
	ReasonInvalidReference Reason = "invalid image reference"
	// ReasonNotFound says: the registry has no such image.
	ReasonNotFound Reason = "image not found"
	// ReasonUnauthorized says: the registry wants other credentials.
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonTimeout says: the registry was too slow.
	ReasonTimeout Reason = "timeout"
	// ReasonUnreachable says: no connection, or none that can be trusted.
	ReasonUnreachable Reason = "registry unreachable"
	// ReasonUnavailable says: the registry failed or asks to come back later.
	ReasonUnavailable Reason = "registry unavailable"
	// ReasonDigestMismatch says: the content is not what its digest says.
	ReasonDigestMismatch Reason = "digest mismatch"
	// ReasonLimit says: a limit is exceeded.
	ReasonLimit Reason = "limit exceeded"
	// ReasonInsecure says: the registry would have to be reached by plain HTTP.
	ReasonInsecure Reason = "insecure registry"
	// ReasonForbiddenAddress says: the registry sent the request where it must not go.
	ReasonForbiddenAddress Reason = "forbidden address"
	// ReasonInvalidImage says: the image is not one that a package can be in.
	ReasonInvalidImage Reason = "invalid image"
	// ReasonNotCached says: no registry may be asked, and the image is not here.
	ReasonNotCached Reason = "image not in the cache"
	// ReasonLocal says: files on this side cannot be read or written.
	ReasonLocal Reason = "local error"
)

// PullError says why an image could not be pulled. Its text holds no
// credentials.
type PullError struct {
	// Ref is the reference as it was given.
	Ref string
	// Reason for callers.
	Reason Reason
	// Details for people.
	Details string
	// Remedy says what to do, as a sentence.
	Remedy string
	// Temporary is set where the same pull may succeed later without anyone
	// changing the image or the configuration.
	Temporary bool
	// Err is the cause where it is a typed error of this project; other causes
	// are left out, because their text may hold credentials.
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

// failure is an error of this package on its way to a PullError.
type failure struct {
	reason          Reason
	details, remedy string
	temporary       bool
}

func (f *failure) Error() string { return f.details }

func failf(reason Reason, remedy, format string, args ...any) *failure {
	return &failure{reason: reason, details: fmt.Sprintf(format, args...), remedy: remedy}
}

var errPullTimeout = errors.New("pull timeout")

// classify turns any error of a pull into a PullError. The caller's own
// cancellation passes through.
func (p *Puller) classify(ctx context.Context, ref string, err error, secrets *secrets) error {
	if err == nil {
		return nil
	}
	var done *PullError
	if errors.As(err, &done) {
		return err
	}
	e := &PullError{Ref: safeRef(ref)}
	var (
		own      *failure
		content  *archive.Error
		answer   *transport.Error
		badCert  *tls.CertificateVerificationError
		badAlert tls.AlertError
	)
	switch {
	case errors.As(err, &badCert), errors.As(err, &badAlert):
		e.Reason, e.Details = ReasonUnreachable, err.Error()
		e.Remedy = "Give the registry's certificate authority in the CA bundle."
	case errors.As(err, &own):
		e.Reason, e.Details, e.Remedy, e.Temporary = own.reason, own.details, own.remedy, own.temporary
		if own.reason == ReasonLimit && own.remedy == "" {
			e.Remedy = "Ask whoever runs the registry why it answers like that."
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
	case errors.As(err, &answer):
		e.fromAnswer(answer)
	case isTimeout(err):
		e.Reason, e.Details, e.Temporary = ReasonTimeout, p.timeout(err), true
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Reason, e.Details = ReasonInsecure, "the registry answers by plain HTTP only"
		e.Remedy = "Serve it by HTTPS, or name this host as an insecure registry."
	case isLocal(err):
		e.Reason, e.Details, e.Temporary = ReasonLocal, err.Error(), true
	default:
		e.Reason, e.Details, e.Temporary = ReasonUnreachable, err.Error(), true
	}
	e.Details, e.Remedy = secrets.redact(e.Details)+p.redirected(ref), cmp.Or(e.Remedy, p.remedy(e.Reason))
	return e
}

// remedies say what to do where nothing more precise is known.
var remedies = map[Reason]string{
	ReasonTimeout:        "Ask whoever runs the registry; the pull is tried again by itself.",
	ReasonUnreachable:    "Check the host in the image reference, and that the cluster reaches it; the pull is tried again by itself.",
	ReasonUnavailable:    "Ask whoever runs the registry; the pull is tried again by itself.",
	ReasonDigestMismatch: "Push the image again, and ask whoever runs the registry.",
}

// onceRemedies stand for others where nobody tries again.
var onceRemedies = map[Reason]string{
	ReasonTimeout:     "Try again, or ask whoever runs the registry.",
	ReasonUnreachable: "Check the host in the image reference, and that it can be reached from here.",
	ReasonUnavailable: "Try again, or ask whoever runs the registry.",
}

func (p *Puller) remedy(reason Reason) string {
	if text := onceRemedies[reason]; p.opts.Once && text != "" {
		return text
	}
	return remedies[reason]
}

// timeout names the limit that a registry did not keep.
func (p *Puller) timeout(err error) string {
	if strings.Contains(err.Error(), "awaiting response headers") {
		return fmt.Sprintf("the registry did not answer within %v", p.opts.Timeouts.Header)
	}
	return fmt.Sprintf("the registry could not be reached within %v: %v", p.opts.Timeouts.Connect, err)
}

// isTimeout recognises timeouts also where several attempts failed.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &network) && network.Timeout()
}

// fromAnswer reads the status and the error codes of a registry.
func (e *PullError) fromAnswer(answer *transport.Error) {
	e.Details = answer.Error()
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound:
		e.Reason, e.Remedy = ReasonNotFound, "Check the name and the tag, and that the pull secret may read it."
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		e.Reason, e.Remedy = ReasonUnauthorized, "Check the name of the image and the pull secret."
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		e.Reason, e.Temporary = ReasonUnavailable, true
	default:
		e.Reason = ReasonUnavailable
	}
}

// secrets are the credentials that one pull has used.
type secrets struct{ values []string }

var (
	urlQuery    = regexp.MustCompile(`(https?://[^\s"?]*)\?[^\s"]*`)
	urlUserinfo = regexp.MustCompile(`(https?://)[^\s"/@]*@`)
	bearer      = regexp.MustCompile(`(?i)\b(bearer|basic) [A-Za-z0-9._~+/=-]+`)
)

// redact takes credentials, and the queries of URLs, which may be signatures,
// out of a text, and keeps it on one short line.
func (s *secrets) redact(text string) string {
	if s != nil {
		for _, v := range s.values {
			text = strings.ReplaceAll(text, v, "…")
		}
	}
	text = urlQuery.ReplaceAllString(text, "$1?…")
	text = urlUserinfo.ReplaceAllString(text, "$1…@")
	text = bearer.ReplaceAllString(text, "$1 …")
	if len(text) > limits.RegistryErrorBytes {
		text = strings.ToValidUTF8(text[:limits.RegistryErrorBytes], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, text)
}

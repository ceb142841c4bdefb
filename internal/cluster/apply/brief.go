package apply

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/kube/leadership"
)

// Brief returns the text of an error about an object with sensitive values: verb
// and object, reason and field paths, and who refused it. All other words of a
// server, a webhook or a proxy can repeat the object (invariant 8).
func Brief(err error) string { return withRequest(err, true) }

// BriefWithoutFields also omits field paths, because map keys can be sensitive.
func BriefWithoutFields(err error) string { return withRequest(err, false) }

func withRequest(err error, fields bool) string {
	var request *Error
	if errors.As(err, &request) {
		return request.Verb + " " + request.Key.String() + ": " + brief(err, fields)
	}
	return brief(err, fields)
}

func brief(err error, withFields bool) string {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrResponseTooLarge):
		return ErrResponseTooLarge.Error()
	case errors.Is(err, leadership.ErrNotLeading):
		return leadership.ErrNotLeading.Error()
	case !errors.As(err, &status):
		return "the API server could not be reached"
	}
	s := status.Status()
	if name := firstOf(webhook, s.Message); name != "" {
		// Reason, causes and the rest of the message are the webhook's own words.
		return `admission webhook "` + name + `" denied the request; see its log for the reason`
	}
	text := reasonOf(s)
	if name := firstOf(policy, s.Message); name != "" {
		text += `: ValidatingAdmissionPolicy "` + name + `" denied the request`
	}
	if name := firstOf(quota, s.Message); name != "" {
		text += `: exceeded quota "` + name + `"`
	}
	if fields := fieldsOf(s); withFields && len(fields) > 0 {
		text += ": " + strings.Join(fields, ", ")
	}
	return text
}

// Names at the start of the API server's own words.
var (
	webhook = regexp.MustCompile(`^admission webhook "([a-z0-9.-]{1,253})" denied the request`)
	policy  = regexp.MustCompile(`^[^:]* is forbidden: ValidatingAdmissionPolicy '([a-z0-9.-]{1,253})' with binding '`)
	quota   = regexp.MustCompile(`^[^:]* is forbidden: exceeded quota: ([a-z0-9.-]{1,253}),`)
)

func firstOf(pattern *regexp.Regexp, message string) string {
	if found := pattern.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// reasons are the API server's. A server behind it can make up others.
var reasons = []metav1.StatusReason{
	metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists,
	metav1.StatusReasonConflict, metav1.StatusReasonGone, metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout,
	metav1.StatusReasonStoreReadError, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest,
	metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge,
	metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonInternalError, metav1.StatusReasonExpired,
	metav1.StatusReasonServiceUnavailable,
}

func reasonOf(s metav1.Status) string {
	if slices.Contains(reasons, s.Reason) {
		return string(s.Reason)
	}
	if text := http.StatusText(int(s.Code)); text != "" {
		return text
	}
	return "refused"
}

// fieldPath matches the path of a field.
var fieldPath = regexp.MustCompile(`^[A-Za-z_.][A-Za-z0-9_.\-/\[\]*]{0,255}$`)

// fieldsOf returns the paths of the refused fields, sorted.
func fieldsOf(s metav1.Status) []string {
	if s.Details == nil {
		return nil
	}

	var fields []string
	for _, cause := range s.Details.Causes {
		if fieldPath.MatchString(cause.Field) {
			fields = append(fields, cause.Field)
		}
	}

	slices.Sort(fields)
	return slices.Compact(fields)
}

// Reduced returns an error whose text is [Brief] and that wraps its cause.
func Reduced(err error) error {
	if err == nil {
		return nil
	}
	return &reduced{cause: err}
}

type reduced struct{ cause error }

// Error is the reduced text.
func (r *reduced) Error() string { return Brief(r.cause) }

// Unwrap returns the cause.
func (r *reduced) Unwrap() error { return r.cause }

package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/kube/webhooks"
)

// Class is the engine's reaction to the answer to a request.
type Class int

// The classes.
const (
	// OK: there is no error.
	OK Class = iota
	// Conflict: the object is not in the state that the guard names. Read it again.
	Conflict
	// FieldConflict: an apply without force would change other managers' fields.
	FieldConflict
	// Replaced: another object with that name has taken its place. Read it again.
	Replaced
	// Absent: there is no such object.
	Absent
	// StaleFields: managedFields name a version that the CRD no longer has, which
	// makes every apply of the custom resource fail. Migrate them first.
	StaleFields
	// Blocked: a user has to change something first. Trying again later helps
	// only if they did.
	Blocked
	// NotServed: the API of the object does not exist yet, or is being removed.
	NotServed
	// NamespaceTerminating: the namespace is terminating or absent. Objects can only be created in
	// it after it was created again.
	NamespaceTerminating
	// Retry: the same request can succeed later; see RetryAfter.
	Retry
	// NotLeading: the request was not sent, because another manager might lead.
	NotLeading
)

var classNames = [...]string{
	"OK", "Conflict", "FieldConflict", "Replaced", "Absent", "StaleFields",
	"Blocked", "NotServed", "NamespaceTerminating", "Retry", "NotLeading",
}

// String returns the name of the class.
func (c Class) String() string { return classNames[c] }

// IsAbsent reports whether the error means that the object does not exist. The 404 of an API that
// is currently not served does not prove that.
func IsAbsent(err error) bool { return Classify(err) == Absent }

// IsBlocked reports whether the same request fails until a user has changed something.
func IsBlocked(err error) bool {
	class := Classify(err)
	return class == Blocked || class == NamespaceTerminating
}

// Classify returns the class of an error of a Writer, of a client-go client or
// of a watch.
func Classify(err error) Class {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return OK
	case errors.Is(err, leadership.ErrNotLeading):
		return NotLeading
	case errors.Is(err, ErrResponseTooLarge):
		return Blocked
	case errors.As(err, &status):
		return classifyStatus(err, status.Status())
	}

	// Network, timeout, cancelled, or not the answer of an API server.
	return Retry
}

func classifyStatus(err error, s metav1.Status) Class {
	if webhooks.Denied(err) {
		return Blocked
	}
	switch s.Code {
	case http.StatusNotFound:
		return classifyNotFound(err, s)
	case http.StatusConflict:
		return classifyConflict(err, s)
	case http.StatusForbidden, http.StatusMethodNotAllowed:
		return classifyForbidden(s)
	case http.StatusUnprocessableEntity:
		return classifyInvalid(err, s)
	case http.StatusInternalServerError:
		return classifyInternal(s)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		return Blocked
	}

	return Retry
}

// classifyNotFound distinguishes a missing object, a missing namespace and a missing
// resource. The answer for a missing resource is not a Status, or does not name an object.
func classifyNotFound(err error, s metav1.Status) Class {
	var e *Error
	switch {
	case s.Details == nil, s.Details.Name == "", hasCause(s, metav1.CauseTypeUnexpectedServerResponse):
		return NotServed
	case s.Details.Kind == "namespaces" && s.Details.Group == "" && errors.As(err, &e) && e.Resource != "namespaces":
		return NamespaceTerminating
	}
	return Absent
}

func classifyConflict(err error, s metav1.Status) Class {
	if hasCause(s, metav1.CauseTypeFieldManagerConflict) {
		return FieldConflict
	}

	var e *Error
	if s.Details != nil && s.Details.Kind == "resourcequotas" && errors.As(err, &e) && e.Resource != "resourcequotas" {
		// The quota that counts the object was written concurrently.
		return Retry
	}
	return Conflict
}

func classifyForbidden(s metav1.Status) Class {
	switch {
	case hasCause(s, corev1.NamespaceTerminatingCause):
		return NamespaceTerminating
	case strings.Contains(s.Message, "while custom resource definition is terminating"):
		return NotServed
	}
	return Blocked
}

func classifyInvalid(err error, s metav1.Status) Class {
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Field == "metadata.uid" {
				return Replaced
			}
		}
	}

	var e *Error
	if errors.As(err, &e) && strings.HasSuffix(e.Verb, "patch") && (s.Details == nil || s.Details.Name == "") && !undecodable(s) {
		// A JSON patch that does not apply: one of its tests failed.
		return Conflict
	}

	return Blocked
}

func classifyInternal(s metav1.Status) Class {
	says := func(text string) bool { return strings.Contains(s.Message, text) }
	switch {
	case says("failed to create typed patch object"):
		// An unknown field or a wrong type in the applied content.
		return Blocked
	case says("etcdserver: request is too large"), says("trying to send message larger"):
		// The object exceeds etcd's limit.
		return Blocked
	case says("request to convert CR to an invalid group/version"):
		return StaleFields
	}

	return Retry
}

func hasCause(s metav1.Status, cause metav1.CauseType) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == cause
	})
}

// RetryAfter returns the pause that the API server requests; 0 if it requests none.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// undecodable reports whether the result of a JSON patch cannot be decoded. The cause names no
// field, and its message quotes the whole object.
func undecodable(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, isPatch)
}

func isPatch(cause metav1.StatusCause) bool { return cause.Field == "patch" }

// CausesOf returns the fields that a refusal names, in order, such as spec.ports[1].name.
func CausesOf(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && !isPatch(cause) && !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}

	return fields
}

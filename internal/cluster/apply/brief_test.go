package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// TestBriefHasNoValues puts a value into every text where an API server, a webhook or a proxy can
// repeat one.
func TestBriefHasNoValues(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	status := func(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes},
		}}
	}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"invalid": {"the API server quotes the value", apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{
			field.Invalid(field.NewPath("data").Key("b"), value, "must not be "+value),
			field.Invalid(field.NewPath("data").Key("a"), value, "field is immutable"),
		}), "Invalid: data[a], data[b]"},
		"bad request": {"decoders quote input that they cannot decode", apierrors.NewBadRequest("got " + value), "BadRequest"},
		"proxy":       {"a text that is not a Status", errors.New("proxy said " + value), "the API server could not be reached"},
		"not leading": {"our own words", fmt.Errorf("%s: %w", value, leadership.ErrNotLeading), leadership.ErrNotLeading.Error()},
		"too large":   {"our own words", fmt.Errorf("%s: %w", value, ErrResponseTooLarge), ErrResponseTooLarge.Error()},
		"webhook": {
			"message, reason and causes are the webhook's choice",
			status(http.StatusTeapot, value, `admission webhook "policy.example.com" denied the request: no `+value, metav1.StatusCause{Field: "data." + value}),
			`admission webhook "policy.example.com" denied the request; see its log for the reason`,
		},
		"policy": {
			"the message of a policy is an expression on the object",
			status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
				`secrets "a" is forbidden: ValidatingAdmissionPolicy 'no-plain' with binding 'all' denied request: `+value, metav1.StatusCause{Message: value}),
			`Invalid: ValidatingAdmissionPolicy "no-plain" denied the request`,
		},
		"words of a policy in those of another": {
			"a name counts at its place only",
			status(http.StatusForbidden, metav1.StatusReasonForbidden, "no: ValidatingAdmissionPolicy '"+value+"' with binding 'x' denied request"), "Forbidden",
		},
		"quota": {
			"which quota is asked first", status(http.StatusForbidden, metav1.StatusReasonForbidden, `secrets "a" is forbidden: exceeded quota: small, requested: secrets=1`),
			`Forbidden: exceeded quota "small"`,
		},
		"made-up reason":  {"an aggregated API server can answer anything", status(http.StatusConflict, value, value), "Conflict"},
		"made-up code":    {"as above", status(799, value, value), "refused"},
		"an invalid path": {"as above", status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "", metav1.StatusCause{Field: "got " + value}), "Invalid"},
		"typed": {
			"server-side apply quotes the whole object",
			status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "failed to create typed patch object (a; v1, Kind=Secret): expected map, got &{"+value+"}"),
			"InternalError",
		},
		"with its request": {
			"verb and object stay",
			&Error{Verb: "apply", Key: objects.Key{Kind: "Secret", Namespace: "shop", Name: "a"}, Err: apierrors.NewBadRequest(value)},
			"apply Secret shop/a: BadRequest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{tc.err, fmt.Errorf("%s: %w", value, tc.err)} {
				require.Equal(t, tc.want, Brief(err), tc.reason)
				reduced := fmt.Errorf("create it: %w", Reduced(err))
				if Classify(reduced) != Classify(err) {
					t.Errorf("reduced, it is %s instead of %s", Classify(reduced), Classify(err))
				}
				if text := fmt.Sprintf("%v %+v %q %s", reduced, reduced, reduced, errors.Join(reduced)); strings.Contains(text, value) {
					t.Errorf("the value is in %s", text)
				}
			}
		})
	}
	if Reduced(nil) != nil {
		t.Error("no error became one")
	}
}

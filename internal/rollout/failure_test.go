package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/schemas"
)

// TestFailuresOfSensitiveRevisionsAreReduced: what a server says of an object goes
// into statuses, unless a revision of the owner has sensitive values (invariant 8).
func TestFailuresOfSensitiveRevisionsAreReduced(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	key := objects.Key{Kind: "Secret", Namespace: "shop", Name: "a"}
	refused := &apply.Error{Verb: "apply", Key: key, Err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("data").Key("k"), value, "is immutable")})}
	for name, tc := range map[string]struct {
		reason    string
		sensitive bool
		err       error
		want      string
		quoted    bool
	}{
		"ordinary":        {"the text helps", false, refused, "is immutable", true},
		"sensitive":       {"reason and field are left", true, refused, "apply Secret shop/a: Invalid: data[k]", false},
		"network":         {"a proxy may quote the request", true, errors.New("502: " + value), "could not be reached", false},
		"schema":          {"our own words quote nothing", true, &schemas.InvalidError{Fields: []schemas.FieldError{{Path: ".data", Problem: "expected map"}}}, ".data: expected map", false},
		"schema not read": {"it is about the schema", true, &schemas.UnavailableError{Err: errors.New("503")}, "503", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(OwnerKey{Kind: "ObjectDeployment", Namespace: "shop", Name: "shop"}, "owner")
			r.Put(&Revision{Revision: phases.Revision{UID: "old"}, Sensitive: tc.sensitive})
			r.Put(&Revision{Revision: phases.Revision{UID: types.UID("new")}})
			x := &run{Executor: &Executor{Now: time.Now}, rollout: r}
			x.fail(phases.Step{Key: key}, fmt.Errorf("phase one: %w", tc.err), false)
			got := r.Memory.At(key).Failure.Message
			if !strings.Contains(got, tc.want) || strings.Contains(got, value) != tc.quoted {
				t.Errorf("%s: %q, want %q in it", tc.reason, got, tc.want)
			}
		})
	}
}

package applies_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// applyTwins applies a version as kubectl does, and returns the kinds that carried it out.
func (t *trial) applyTwins(ctx context.Context, c choice) (accepted []*twin) {
	for _, twin := range t.twins {
		if !twin.lost && twin.apply(ctx, t.kind.template(c, twin.name)) == nil {
			accepted = append(accepted, twin)
		}
	}
	return accepted
}

// done returns the kinds of kubectl apply that accepted a version and completed it. A kind is
// incomplete if it kept a value that had to be removed, or did not write a stated one.
func (t *trial) done(ctx context.Context, c choice, accepted []*twin) []*twin {
	return slices.DeleteFunc(slices.Clone(accepted), func(twin *twin) bool {
		o := t.outcome(ctx, c, t.leavesOf(ctx, twin.name))
		o.twins = []leaves{o.live} // values that it leaves can stay
		return len(judge(o)) > 0
	})
}

// lose excludes the kinds of kubectl apply that did not make the same change as Lockstep, because
// their objects are in another state from then on.
func (t *trial) lose(accepted []*twin) {
	for _, twin := range t.twins {
		twin.lost = twin.lost || !slices.Contains(accepted, twin)
	}
}

func (t *trial) replaceable(ctx context.Context, c choice) bool {
	return t.read(ctx, t.name) != nil && t.lab.replaceable(ctx, t.kind.template(c, t.name)) == nil
}

// refusal judges that a version was refused: neither kind of kubectl apply, nor kubectl replace,
// must be able to complete it. If one is, refusal first tries the version again, because that
// might only have been a matter of time.
func (t *trial) refusal(ctx context.Context, step int, c choice, accepted []*twin, found result) result {
	possible := ""
	if done := t.done(ctx, c, accepted); len(done) > 0 {
		possible = done[0].how + " carries it out"
	} else if t.recreates(step, c) {
		possible = "it can be recreated"
	} else if t.replaceable(ctx, c) {
		possible = "kubectl replace would accept it"
	}
	if possible == "" {
		return found
	}
	found, err := t.subject.settle(ctx, "", true)
	if err != nil {
		t.fail(step, "%v", err)
	} else if found.refused {
		t.fail(step, "refused, and %s:\n  %s", possible, found.said)
	}
	return found
}

// afterRefusal checks that the object is as it was. before is nil if it was edited meanwhile.
func (t *trial) afterRefusal(ctx context.Context, step int, before leaves, accepted []*twin, found result) {
	t.cases++
	t.refused, t.rest = true, nil // the attempt might have migrated managedFields
	if after := t.leavesOf(ctx, t.name); before != nil && !t.edited && !reflect.DeepEqual(before, after) {
		t.fail(step, "refused, and the object has changed nevertheless:\n  %s\n  %s", found.said, strings.Join(differences(before, after), "\n  "))
	}
	for _, twin := range accepted {
		twin.lost = true // it has changed, and Lockstep's object has not
	}
}

// recreates reports whether a step can recreate the object. Only a version that follows another
// one can: the engine never deletes an object because of an adoption or an edit.
func (t *trial) recreates(step int, c choice) bool {
	metadata, _ := t.kind.template(c, t.name)["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[corev1alpha1.OnImmutableAnnotation] == corev1alpha1.OnImmutableRecreate &&
		t.version != nil && t.events[step].apply != nil && !maps.Equal(t.version, c)
}

func differences(before, after leaves) []string {
	var all []string
	for _, path := range paths(before, after) {
		if was, is := value(before, path), value(after, path); !reflect.DeepEqual(was, is) {
			all = append(all, fmt.Sprintf("%s: %s → %s", path, shown(was), shown(is)))
		}
	}
	return all
}

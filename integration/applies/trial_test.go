package applies_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trial plays one history.
type trial struct {
	*history
	lab     *lab
	name    string
	subject *subject
	twins   []*twin
	// others are the values that other writers gave Lockstep's object.
	others map[string]written
	// version is the object's current one; nil before the first was accepted. former are the
	// values that any version or the original object has stated, and defaults their defaults.
	version          choice
	former, defaults values
	// refused means that Lockstep and kubectl refused the last version; edited that the object was
	// edited and the engine has not run since.
	refused, edited bool
	// said contains all messages of revisions about the object.
	said string
	// rest is the object at rest; nil while it is not.
	rest    map[string]any
	failure *failure
	cases   int // compared outcomes
}

// twin is the object of one kind of kubectl apply.
type twin struct {
	how, name string
	apply     func(context.Context, map[string]any) error
	// lost means that it has not carried out all steps.
	lost bool
}

func newTrial(l *lab, h *history) *trial {
	name := l.unique()
	t := &trial{history: h, lab: l, name: name + "l", others: map[string]written{}, former: values{}, defaults: values{}}
	t.twins = []*twin{{how: "kubectl apply", name: name + "c", apply: l.clientSide}, {how: "kubectl apply --server-side", name: name + "s", apply: l.serverSide}}
	template := h.kind.template(nil, t.name)
	mapping, err := l.mapping(gvkOf(template))
	if err != nil {
		panic(err) // the kinds of this package are served
	}
	t.subject = newSubject(l, name, mapping.Scope.Name() == meta.RESTScopeNameNamespace, gvkOf(template), nameOf(template))
	return t
}

func (t *trial) fail(step int, format string, args ...any) {
	if t.failure == nil {
		t.failure = &failure{t.history, step, fmt.Sprintf(format, args...)}
	}
}

// prepare creates the original objects that Lockstep adopts.
func (t *trial) prepare(ctx context.Context) {
	if t.origin == "" {
		return
	}
	for _, name := range []string{t.name, t.twins[0].name, t.twins[1].name} {
		if err := t.lab.origin(ctx, t.origin, t.kind.template(t.history.version, name)); err != nil {
			t.origin = "" // as if it had not been tried
			return
		}
	}
	stated := t.stated(t.history.version)
	maps.DeleteFunc(stated, func(_ string, value any) bool { return isEmpty(value) }) // no manager owns these after a server-side apply
	t.former.add(stated)
	t.defaults.add(t.leavesOf(ctx, t.name))
}

// play plays the event of a step.
func (t *trial) play(ctx context.Context, step int) {
	if t.failure != nil {
		return
	}
	switch e := t.events[step]; {
	case e.restart:
		t.afterRestart(ctx, step)
	case e.edit != nil:
		t.edit(ctx, step, e.edit)
	default:
		t.apply(ctx, step, e.apply)
	}
}

// read returns an object; nil if there is none.
func (t *trial) read(ctx context.Context, name string) map[string]any {
	template := t.kind.template(t.version, name)
	live, err := t.lab.client(template).Get(ctx, nameOf(template), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	return live.Object
}

// leavesOf returns the leaves of an object.
func (t *trial) leavesOf(ctx context.Context, name string) leaves {
	return t.leaves(t.read(ctx, name), name)
}

func (t *trial) leaves(object map[string]any, name string) leaves {
	if object == nil {
		return nil
	}
	normal := normalise(object, name)
	if err := t.lab.shapes.learn(normal); err != nil {
		panic(fmt.Sprintf("%s: %v: %s", t.kind.name, err, describe(normal)))
	}
	return t.lab.shapes.of(normal)
}

// apply applies a version.
func (t *trial) apply(ctx context.Context, step int, c choice) {
	if _, err := t.lab.freshly(ctx, t.kind, c); err != nil {
		return
	}
	t.atRest(ctx, step, "it was written at rest")
	existing := t.read(ctx, t.name)
	before := t.leaves(existing, t.name)
	if err := t.subject.want(t.kind.template(c, t.name)); err != nil {
		t.fail(step, "%v", err)
		return
	}
	found, err := t.subject.settle(ctx, "", false)
	if err != nil {
		t.fail(step, "%v", err)
		return
	}
	accepted := t.applyTwins(ctx, c)
	if found.refused {
		if found = t.refusal(ctx, step, c, accepted, found); found.refused {
			t.afterRefusal(ctx, step, before, accepted, found)
			return
		}
	}
	if uidOf(t.read(ctx, t.name)) != uidOf(existing) {
		t.others, before = map[string]written{}, nil // it was recreated
	}
	t.lose(accepted)
	t.handOver(before, c)
	t.former.add(t.stated(c))
	t.version, t.refused, t.edited = c, false, false
	t.judge(ctx, step, found)
}

// handOver moves values from Lockstep to other writers, and back: replicas stay after they left
// the template, and aggregated rules are removed with the aggregation.
func (t *trial) handOver(before leaves, c choice) {
	const replicas = "/spec/replicas"
	stated := t.stated(c)
	if was, had := before[replicas]; had && t.kind.scales() {
		if _, states := stated[replicas]; !states {
			t.others[replicas] = written{value: was, must: true}
		}
	}
	if !aggregated(stated) {
		if t.version != nil && aggregated(t.stated(t.version)) {
			delete(t.others, "/rules")
		}
	}
}

func aggregated(stated leaves) bool {
	_, is := stated["/aggregationRule/clusterRoleSelectors"]
	return is
}

// stated returns the leaves of a template.
func (t *trial) stated(c choice) leaves {
	template := t.kind.template(c, t.name)
	if plain, ok := template["stringData"].(map[string]any); ok { // is written to data
		for key := range plain {
			assign(template, []string{"data", key}, plain[key])
		}
		delete(template, "stringData")
	}
	return t.leaves(template, t.name)
}

// edit edits all objects, unless the API server refuses it.
func (t *trial) edit(ctx context.Context, step int, e *edit) {
	if t.version == nil {
		return
	}
	t.atRest(ctx, step, "it was written at rest")
	before, after, err := t.lab.edited(ctx, t.kind, e, t.kind.template(t.version, t.name), t.name)
	if err != nil {
		return
	}
	wrote(t.others, t.leaves(before, t.name), t.leaves(after, t.name))
	for _, twin := range t.twins {
		if _, _, err := t.lab.edited(ctx, t.kind, e, t.kind.template(t.version, twin.name), twin.name); err != nil {
			twin.lost = true
		}
	}
	t.edited, t.rest = true, nil
	if e.away || t.refused {
		return
	}
	t.correct(ctx, step)
}

// edited makes an edit of one object.
func (l *lab) edited(ctx context.Context, k *kind, e *edit, template map[string]any, name string) (before, after map[string]any, err error) {
	if e.how == "scale" {
		return l.scale(ctx, template, e.to)
	}
	if d := k.dimension(e.dimension); d.manager != "" {
		return l.controlled(ctx, d.manager, template, assignments(strings.ReplaceAll(d.alternatives[e.to], "NAME", name)))
	}
	return l.edit(ctx, e.how, template, func(object map[string]any) { k.edited(object, e.dimension, e.to, name) })
}

// correct lets the engine correct an edit, and kubectl apply the same version again.
func (t *trial) correct(ctx context.Context, step int) {
	live := t.read(ctx, t.name)
	found, err := t.subject.settle(ctx, resourceVersionOf(live), false)
	if err != nil {
		t.fail(step, "%v", err)
		return
	}
	accepted := t.applyTwins(ctx, t.version)
	if found.refused {
		if found = t.refusal(ctx, step, t.version, accepted, found); found.refused {
			t.afterRefusal(ctx, step, nil, accepted, found)
			return
		}
	}
	t.lose(accepted)
	t.edited = false
	t.judge(ctx, step, found)
}

func uidOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}

func resourceVersionOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

// judge judges the object after a version was accepted.
func (t *trial) judge(ctx context.Context, step int, found result) {
	live := t.read(ctx, t.name)
	if live == nil {
		t.fail(step, "the object does not exist")
		return
	}
	t.said += "\n" + found.said
	o := t.outcome(ctx, t.version, t.leaves(live, t.name))
	for _, twin := range t.twins {
		if !twin.lost {
			o.twins = append(o.twins, t.leavesOf(ctx, twin.name))
		}
	}
	t.cases++
	if wrong := judge(o); len(wrong) > 0 {
		var lines []string
		for _, d := range wrong {
			lines = append(lines, d.String())
		}
		t.fail(step, "  %s", strings.Join(lines, "\n  "))
	}
	t.others = o.claimed()
	t.rest = live
}

// outcome collects the facts about an object that has a version.
func (t *trial) outcome(ctx context.Context, c choice, live leaves) *outcome {
	object, err := t.lab.freshly(ctx, t.kind, c)
	if err != nil {
		panic(err) // it was valid before
	}
	o := &outcome{
		live: live, fresh: t.leaves(copied(object).(map[string]any), "no name"), stated: t.stated(c),
		others: t.others, said: t.said, former: t.former, defaults: t.defaults, strict: t.strict,
	}
	t.defaults.add(o.fresh)
	if aggregated(o.stated) {
		o.free = []string{"/rules"}
	}
	return o
}

// atRest checks that no request was written since the object was judged.
func (t *trial) atRest(ctx context.Context, step int, otherwise string) {
	if t.rest == nil {
		return
	}
	if was, is := state(t.rest), state(t.read(ctx, t.name)); !reflect.DeepEqual(was, is) {
		t.fail(step, "%s:\n%s", otherwise, cmp.Diff(was, is))
	}
}

// afterRestart judges the engine after a restart: it must not write, or only correct edits that
// were made meanwhile.
func (t *trial) afterRestart(ctx context.Context, step int) {
	switch {
	case t.version == nil || t.refused:
	case t.edited:
		t.correct(ctx, step)
	default:
		if _, err := t.subject.settle(ctx, resourceVersionOf(t.read(ctx, t.name)), false); err != nil {
			t.fail(step, "%v", err)
			return
		}
		t.atRest(ctx, step, "the restart wrote it")
	}
}

package objectdeployments

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// platform is the deployment of the cluster among the rivals.
const platform = "platform"

// holders records which deployments held objects before the last kill, as far as that is durable,
// and which objects each holds and controls.
type holders struct {
	before   map[objects.Key]types.UID
	restarts int
}

// In TestHolders deployments of a namespace and of the cluster want the same objects, take them
// over from each other by collisionProtection, are refused, paused, changed and deleted, and the
// manager restarts at any moment. The deployment that holds an object before a restart holds it
// afterwards, whatever claims are on record, and at rest a restart changes no object. In the end
// every deleted deployment is removed.
func TestHolders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, testHolders) })
}

func testHolders(t *rapid.T) {
	if os.Getenv("LOCKSTEP_DEEP") == "" && uniform(4).Draw(t, "sampled") > 0 {
		return
	}
	r := newRivals(t, []string{"one", platform, "two"})
	defer func() {
		r.chaos = false
		r.manager.kill()
	}()
	actions := slices.Concat(slices.Repeat([]string{"step"}, 24), slices.Repeat([]string{"deliver", "view"}, 6), slices.Repeat([]string{"template"}, 3),
		[]string{"delete", "create", "kill", "late", "sync", "wait", "pause", "forge", "restart", "restart"})
	for range 20 * uniform(10).Draw(t, "actions") {
		r.act(actions[uniform(len(actions)).Draw(t, "action")])
	}
	r.restart()
	for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") {
		r.delete(r.names[i])
		if r.converge(); r.server.Get(rivalKey(r.names[i])) != nil {
			r.failf("%s is not deleted", r.names[i])
		}
		r.restart()
	}
	for _, key := range universe {
		if o := objectOf(r.server.Get(key)); o != nil && o.controller() != "" {
			r.failf("%s is left: %s", key, o)
		}
	}
}

// collision draws a protection; among namespaced deployments alone the claim decides in any.
func (r *rivals) collision() corev1alpha1.CollisionProtection {
	if !slices.Contains(r.names, platform) || rapid.Bool().Draw(r.t, "prevent") {
		return corev1alpha1.CollisionProtectionPrevent
	}
	return corev1alpha1.CollisionProtectionNone
}

// inNamespace names the namespace of the objects of a deployment of the cluster.
func inNamespace(of string, spec corev1alpha1.ObjectSetTemplateSpec) corev1alpha1.ObjectSetTemplateSpec {
	for i := range spec.Phases {
		for k := range spec.Phases[i].Objects {
			u, raw := &unstructured.Unstructured{}, &spec.Phases[i].Objects[k].Object
			if of != platform {
				continue
			}
			if err := utiljson.Unmarshal(raw.Raw, &u.Object); err != nil {
				panic(err)
			}
			u.SetNamespace("n")
			raw.Raw, _ = u.MarshalJSON()
		}
	}
	return spec
}

// forge makes a status claim that a revision of a namespace has its claim, although it lost it or
// never had it.
func (r *rivals) forge(name string) {
	if name == platform {
		return
	}
	for _, key := range r.server.Keys() {
		if key.Kind != "ObjectSet" {
			continue
		}
		set := decode(r.server.Get(key), &corev1alpha1.ObjectSet{})
		if objectsets.OwnerOf(set).Name != name || !meta.IsStatusConditionFalse(set.Status.Conditions, corev1alpha1.ConditionClaimed) {
			continue
		}
		r.logf("forge the claim of %s", key)
		conditions.Set(&set.Status.Conditions, set.Generation, corev1alpha1.ConditionClaimed, true, corev1alpha1.ReasonClaimed, "Forged.")
		if _, err := r.server.UpdateStatus(key, encode(set)); err != nil {
			r.failf("forge %s: %v", key, err)
		}
	}
}

// kill ends the manager and starts the next one.
func (r *rivals) kill() {
	r.logf("kill")
	if r.manager.reconciler.restored {
		r.before = map[objects.Key]types.UID{}
		for _, key := range universe {
			holder, held := r.holder(key)
			if o := objectOf(r.server.Get(key)); held && o != nil && o.controller() == holder {
				r.before[key] = holder
			}
		}
	}
	r.manager.kill()
	r.restarts++
	r.manager = r.start()
}

// checkRestored checks, once the claims are restored, that the holder of each object is the same.
func (r *rivals) checkRestored() {
	if r.before == nil || !r.manager.reconciler.restored || !slices.Contains(r.names, platform) {
		return
	}
	there := r.deployments()
	for key, holder := range r.before {
		now, held := r.holder(key)
		if o := objectOf(r.server.Get(key)); there[holder] != nil && o != nil && o.controller() == holder && (!held || now != holder) {
			r.failf("%s: %s held %s before the restart, and %q does afterwards", r.manager.cluster.Now(), there[holder].Name, key, now)
		}
	}
	r.before = nil
}

// restart restarts the manager at rest, which changes no holder and no object.
func (r *rivals) restart() {
	chaos := r.chaos
	r.converge()
	before := r.held()
	r.logf("restart at rest")
	r.kill()
	r.converge()
	for key, now := range r.held() {
		was := before[key]
		if was.holder == "" && (now.controller == "" || now.controller == now.holder) {
			was.holder = now.holder // a set has it on record that a deposed leader created late
		}
		if now.holder == "" && was.controller != was.holder {
			was.holder = "" // it was not written, and the claim is lost
		}
		if was != now {
			r.failf("a restart changed %s from %+v to %+v", key, was, now)
		}
	}
	r.chaos = chaos
}

// hold records which deployment holds and which one controls an object.
type hold struct {
	holder, controller types.UID
	version            string
}

func (r *rivals) held() map[objects.Key]hold {
	all := map[objects.Key]hold{}
	for _, key := range universe {
		h := hold{}
		h.holder, _ = r.holder(key)
		if u := r.server.Get(key); u != nil {
			h.controller, h.version = objectOf(u).controller(), u.GetResourceVersion()
		}
		all[key] = h
	}
	return all
}

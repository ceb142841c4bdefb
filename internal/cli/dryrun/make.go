package dryrun

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/internal/rollout"
)

// Request is what to foresee.
type Request struct {
	// Scope, Namespace and Name are those of the package.
	Scope           corev1alpha1.Scope
	Namespace, Name string
	// Template is what the package was rendered to, and Labels its well-known labels.
	Template corev1alpha1.ObjectSetTemplateSpec
	Labels   map[string]string
	// Sensitive tells which objects of the template hold values that may stand in
	// Secrets only; nil where there are no such values.
	Sensitive func(phase, object int) bool
	// ReportDrift means that what others changed is named and left so.
	ReportDrift bool
	// Alone means that the deployment is not managed by a package.
	Alone bool
	// ManagerNamespace is where the objects of a ClusterPackage with such values are.
	ManagerNamespace string
}

// attempts is how often a preview begins anew because an object changed under it.
const attempts = 3

// Make foresees what the rollout of a rendered package does.
func Make(ctx context.Context, c *Cluster, r Request) (*Plan, error) {
	for try := 1; ; try++ {
		plan, err := once(ctx, c, r)
		if class := apply.Classify(err); try == attempts || class != apply.Conflict && class != apply.Replaced {
			return plan, err
		}
	}
}

// once foresees it, unless something changes under it.
func once(ctx context.Context, c *Cluster, r Request) (*Plan, error) {
	in, err := c.gather(ctx, r)
	if err != nil {
		return nil, err
	}
	s, next, err := in.simulation(ctx)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Kind: r.Scope.Kind("Package"), Namespace: r.Namespace, Name: r.Name, Revision: in.number, Warnings: in.warnings}
	if next == nil {
		plan.Warnings = append(plan.Warnings, "the package has no objects, so no revision is made of it")
		plan.finish()
		return plan, nil
	}
	if err := in.admit(ctx, s); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	if err := s.quotas(ctx, in); err != nil {
		return nil, err
	}
	plan.Warnings = in.warnings
	plan.Refusals = s.refusals
	in.report(s, plan)
	if err := in.judge(ctx, s, plan); err != nil {
		return nil, err
	}
	plan.finish()
	return plan, nil
}

// input is what is known before anything is played.
type input struct {
	*Cluster
	Request
	now        time.Time
	key        rollout.OwnerKey
	deployment corev1alpha1.GenericObjectDeployment
	sets       []corev1alpha1.GenericObjectSet
	stored     rollout.Stored
	// number is that of the revision that there would be; fresh means that it would
	// be a new one.
	number   int64
	fresh    bool
	warnings []string
}

// simulation makes the world and what the pure core decides on. next is nil where
// there is neither a revision nor anything to make one of.
func (in *input) simulation(ctx context.Context) (*simulation, *rollout.Revision, error) {
	uid := uuid.NewUUID()
	if in.deployment != nil {
		uid = in.deployment.GetUID()
	}
	roll := rollout.New(in.key, uid)
	roll.Siblings = rollout.Controllers(in.sets...)
	for _, set := range in.sets {
		if !rollout.Owns(set) {
			continue
		}
		rev := rollout.Load(set, in.stored, roll.Owner, in.namespaced)
		rev.RejectReserved(rollout.OfEngine(roll.Owner, in.ManagerNamespace))
		rev.Recall(set, true)
		roll.Put(rev)
	}
	tracker := rollout.NewTracker()
	tracker.Served = func(gk schema.GroupKind, apiVersion string) bool {
		_, version, versioned := strings.Cut(apiVersion, "/")
		if !versioned {
			version = apiVersion
		}
		_, err := in.Mapper.RESTMapping(gk, version)
		return err == nil
	}
	w := &world{
		Cluster: in.Cluster, tracker: tracker, rollout: roll, now: in.now, reached: true,
		objects: map[objects.Key]*object{}, defined: newDefinitions(),
	}
	s := &simulation{world: w, next: in.revision(roll)}
	tracker.Own(in.key, append(uids(in.sets), uid)...)
	if err := w.fill(ctx); err != nil {
		return nil, nil, err
	}
	s.state = roll.State(nil, nil, in.now)
	s.state.Look, s.state.ReportDrift = w.look, in.ReportDrift
	s.state.Passed = func(schema.GroupKind, string) bool { return true } // nothing is watched: all was read just now
	if in.deployment != nil {
		s.state.Jobs = rollout.Recorded(in.deployment.ObjectDeploymentStatus())
	}
	s.state.Probe = func(*phases.Revision, objects.Key, *objects.Observed) probes.Result {
		return probes.Result{Status: probes.True}
	}
	return s, s.next, nil
}

func uids(sets []corev1alpha1.GenericObjectSet) []types.UID {
	var all []types.UID
	for _, set := range sets {
		all = append(all, set.GetUID())
	}
	return all
}

// newUID stands for that of the revision that does not exist yet.
const newUID = "new"

// revision returns the revision that would be the newest: a new one, or the newest
// that there is where it has this very content.
func (in *input) revision(roll *rollout.Rollout) *rollout.Revision {
	switch {
	case !in.fresh && len(in.sets) > 0:
		return roll.Loaded(in.sets[len(in.sets)-1].GetUID())
	case !in.fresh:
		return nil
	}
	set := in.Scope.NewObjectSet()
	set.SetName(in.Name)
	set.SetNamespace(in.Namespace)
	set.SetUID(newUID)
	set.SetLabels(in.labels())
	spec := set.ObjectSetSpec()
	in.Template.DeepCopyInto(&spec.ObjectSetTemplateSpec)
	spec.Revision = in.number
	rev := rollout.Load(set, rollout.Stored{}, roll.Owner, in.namespaced)
	rev.RejectReserved(rollout.OfEngine(roll.Owner, in.ManagerNamespace))
	rev.Sensitive = rev.Sensitive || in.Sensitive != nil
	roll.Put(rev)
	return rev
}

// labels are those that the new revision gets.
func (in *input) labels() map[string]string {
	labels := map[string]string{}
	if in.deployment != nil {
		for k, v := range objects.WellKnown(in.deployment.ObjectDeploymentSpec().Template.Metadata.Labels) {
			labels[k] = v
		}
	}
	for k, v := range in.Labels {
		labels[k] = v
	}
	return labels
}

// fill reads all objects of all revisions.
func (w *world) fill(ctx context.Context) error {
	versions := map[objects.Key]string{}
	for _, rev := range w.rollout.Revisions() {
		for i := range rev.Phases {
			for _, d := range rev.Phases[i].Objects {
				versions[d.Key] = d.Version // the newest one counts
			}
		}
	}
	sights, err := w.read(ctx, versions)
	if err != nil {
		return err
	}
	for key, at := range sights {
		w.objects[key] = &object{sight: at, now: at.live, version: versions[key], reached: true}
	}
	// Templates have to be known before objects are observed.
	state := w.rollout.State(nil, nil, w.now)
	for _, t := range phases.Templates(state) {
		w.tracker.Follow(w.rollout.Key, t.Desired, t.Stamp, rollout.TemplateID(t.Desired, t.Labels, w.rollout.Owner))
	}
	for key, o := range w.objects {
		o.observed = w.observe(key, o.live)
	}
	return nil
}

// admit plays the claim of the new revision: what stands in the way of it as a
// whole.
func (in *input) admit(ctx context.Context, s *simulation) error {
	next := s.next
	if why := in.foreign(); why != "" {
		s.refusePackage(objects.Key{}, why)
	}
	for _, rev := range s.rollout.Revisions() {
		rev.Paused = false // a paused package is foreseen as if it went on
	}
	if next.Blocked != "" {
		s.refusePackage(objects.Key{}, next.Blocked)
		next.Blocked = ""
	}
	if next.Claimed {
		return nil
	}
	conflicts, err := in.claims(ctx, s)
	if err != nil {
		return err
	}
	existing := map[objects.Key]*objects.Observed{}
	for key, o := range s.objects {
		if o.observed != nil {
			existing[key] = o.observed
		}
	}
	claimed := map[objects.Key]bool{}
	for _, b := range conflicts {
		claimed[b.Key] = true
	}
	collisions := slices.DeleteFunc(s.rollout.Collisions(next, existing, in.now), func(b phases.Blocker) bool {
		return claimed[b.Key] // the claim says it already
	})
	for _, b := range slices.Concat(conflicts, collisions) {
		s.refusePackage(b.Key, b.Message)
		s.object(b.Key).refusal = &Refusal{Message: b.Message}
		d, _ := next.Find(b.Key)
		if err := s.pretend(next, d); err != nil {
			return err
		}
	}
	next.Claimed, next.Opened = true, max(next.Opened, min(1, len(next.Phases)))
	return nil
}

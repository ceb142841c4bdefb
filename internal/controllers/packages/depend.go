package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/statuswriter"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// generatedOwner is the owner of generated packages in the mutation cache.
const generatedOwner = "generated packages"

// depend resolves what the package depends on, and installs or changes it. What is loaded is deployed only when all of it
// is available, and recorded in the status.
func (s *reconciliation) depend(ctx context.Context) (step, string, error) {
	required, known := s.requirements()
	if !known || len(required) == 0 && len(s.pkg.PackageStatus().Dependencies) == 0 {
		if known {
			s.await(keyOf(s.pkg), s.state.awaited)
		}
		return s.step, s.why, nil
	}
	undeployed := s.step == stepDeploy && s.attempt.Out.deployed.IsZero()
	end, admitted := s.beginResolution(ctx, undeployed, required)
	switch {
	case !admitted && s.step == stepDeploy:
		return stepGather, "", nil // also once it is deployed: the status must have what was loaded before that is forgotten
	case !admitted:
		return s.step, s.why, nil
	}
	defer end()
	now, done, err := s.resolveDependencies(ctx, required)
	if err != nil {
		return s.step, "", err
	}
	defer done()
	d := s.required
	if d.err = s.perform(ctx, d, now); queueing.Raced(d.err) {
		return s.step, "", d.err
	}
	switch {
	case undeployed && (d.err != nil || !d.result.Ready):
		s.writeErr = d.err
		return stepDepend, "", nil
	case s.step == stepSync && d.err == nil && observed(s.view) && deploymentState(s.dep).Ready:
		return s.step, s.why, s.drop(ctx)
	case undeployed && !sameRecords(s.pkg.PackageStatus().Dependencies, d.entries):
		return s.step, s.why, s.record(ctx)
	}
	return s.step, s.why, nil
}

// record writes what the Package depends on into its status before that is deployed: from then on it holds that.
func (s *reconciliation) record(ctx context.Context) error {
	reportDependencies(s.pkg.PackageStatus(), s.view)
	if err := statuswriter.Write(ctx, s.Client, s.pkg); err != nil {
		return fmt.Errorf("record the dependencies: %w", err)
	}
	s.Fresh.Put(s.pkg)
	return nil
}

// beginResolution reports whether it is the turn of the Package, as begin does; first it may pause where it is new.
func (s *reconciliation) beginResolution(ctx context.Context, undeployed bool, required []corev1alpha1.Dependency) (end func(), admitted bool) {
	if undeployed && len(required) > 0 {
		if left := s.pause(ctx); left > 0 {
			s.Requeue(left)
			return nil, false
		}
	}
	return s.begin(&s.resolving.resolutions)
}

// resolveDependencies resolves what is required without a lock, and anew where what is known changed meanwhile. What it decided
// counts for others until done is called.
func (s *reconciliation) resolveDependencies(ctx context.Context, required []corev1alpha1.Dependency) (now known, done func(), err error) {
	apis := &schemas{read: s.servedAPI()}
	s.attend(keyOf(s.pkg))
	was := s.survey(ctx, s.pkg.GetNamespace())
	for attempt := 1; ; attempt++ {
		plan, err := s.plan(ctx, required, was, apis.served)
		if err != nil {
			s.await(keyOf(s.pkg), s.state.awaited)
			return known{}, nil, err
		}
		s.await(keyOf(s.pkg), slices.Concat(plan.Awaited, s.state.awaited))
		d, committed := viewOf(s.pkg, plan), false
		if was, done, committed = s.commit(ctx, d, plan.Awaited, was, attempt >= limits.ResolutionAttempts); committed {
			s.required = d
			return was, done, nil
		}
		if attempt >= limits.ResolutionAttempts {
			return known{}, nil, apierrors.NewConflict(corev1alpha1.GroupVersion.WithResource("packages").GroupResource(), s.pkg.GetName(),
				errors.New("what it depends on is being deleted"))
		}
	}
}

// viewOf returns what a plan for a Package alone says.
func viewOf(pkg corev1alpha1.GenericPackage, plan resolver.Plan) *dependencyView {
	d := &dependencyView{steps: plan.Steps, result: resolver.Result{Ready: true}}
	if len(plan.Results) > 0 {
		d.result = plan.Results[0]
	}
	for i := range d.result.Outcomes {
		if o := &d.result.Outcomes[i]; o.Failed {
			o.Satisfier = nil // it must not be held by what it does not satisfy
		}
	}
	d.entries = entriesOf(pkg, d.result.Outcomes)
	return d
}

func installedOf(packages map[resolver.Instance]corev1alpha1.GenericPackage) []resolver.Installed {
	all := make([]resolver.Installed, 0, len(packages))
	for _, pkg := range packages {
		if !remote(pkg) {
			all = append(all, snapshot.InstalledOf(pkg))
		}
	}
	slices.SortFunc(all, func(a, b resolver.Installed) int { return a.Instance.Compare(b.Instance) })
	return all
}

// plan resolves the requirements of the Package.
func (s *reconciliation) plan(
	ctx context.Context, required []corev1alpha1.Dependency, k known, served resolver.Served,
) (plan resolver.Plan, err error) {
	root := rootOf(s.pkg, required)
	if s.step == stepDeploy {
		loaded := s.attempt.Out.content.resolved
		root.Package, root.Version, root.Unique = loaded.CatalogName, loaded.Version, loaded.UniqueInScope
	}
	err = s.withResolver(ctx, root, k, served, func(r *resolver.Resolver) (err error) {
		plan, err = s.solve(ctx, r, root, k)
		return err
	})
	return plan, err
}

// planVersions resolves which version a Package has. Where it is not the preferred one, alone is what becomes of the Package in that,
// without others.
func (s *reconciliation) planVersions(
	ctx context.Context, root resolver.Root, k known, served resolver.Served,
) (own resolver.Plan, alone resolver.Result, err error) {
	err = s.withResolver(ctx, root, k, served, func(r *resolver.Resolver) (err error) {
		if own, err = s.solve(ctx, r, root, k); err != nil || own.Results[0].Version == root.Versions[0].Version {
			return err
		}
		preferred := root
		preferred.Versions = root.Versions[:1]
		plan := r.Solve([]resolver.Root{preferred})
		own.Awaited = slices.Concat(own.Awaited, plan.Awaited)
		alone = plan.Results[0]
		return nil
	})
	return own, alone, err
}

// withResolver calls solve with a resolver for a Package.
func (s *reconciliation) withResolver(
	ctx context.Context, root resolver.Root, k known, served resolver.Served, solve func(*resolver.Resolver) error,
) error {
	catalogue := &catalogue{ctx: ctx, Reconciler: s.Reconciler}
	ctx, leave, err := s.Processors.Enter(ctx, s.pkg.GetNamespace())
	if err != nil {
		return err
	}
	defer leave()
	in := resolver.Input{
		Roots: []resolver.Root{root}, Installed: s.installedFor(ctx, s.pkg, k), Catalogue: catalogue,
		Served: func(api *corev1alpha1.DependencyAPI) (is bool, missing []string) {
			queueing.Idle(ctx, func() { is, missing = served(api) })
			return is, missing
		},
		Platform: platformOf(s.environment, s.Version), Yield: func() { queueing.Yield(ctx) },
	}
	if remote(s.pkg) {
		in.Installed, in.Catalogue = nil, nothing{}
	}
	if err := solve(resolver.New(in)); err != nil {
		return err
	}
	return catalogue.err
}

// catalogue reads what repositories offer.
type catalogue struct {
	*Reconciler
	ctx context.Context //nolint:containedctx // of the one resolution that it is made for
	err error
}

// Offers returns the versions of a package that a namespace sees, and without one those that ClusterPackages see.
func (c *catalogue) Offers(namespace, name string) []resolver.Offer {
	listed, err := c.listOffers(c.ctx, name, namespace)
	if err != nil {
		c.err = err
		return nil
	}
	return snapshot.OffersOf(offers.Candidates(name, listed.local, listed.cluster, listed.visible))
}

// Providers returns the names of packages of which a version there provides an API.
func (c *catalogue) Providers(namespace string, api corev1alpha1.ProvidedAPI) []string {
	names := map[string]bool{}
	for _, scope := range scopes {
		list, in := scope.NewAvailablePackageList(), ""
		if scope == corev1alpha1.ScopeNamespaced {
			if in = namespace; in == "" {
				continue
			}
		}
		if err := c.Client.List(c.ctx, list, client.InNamespace(in), client.UnsafeDisableDeepCopy); err != nil {
			c.err = fmt.Errorf("read what repositories offer: %w", err)
			return nil
		}
		for _, available := range list.GenericAvailablePackages() {
			if spec := available.AvailableSpec(); provides(spec, api) {
				names[spec.PackageName] = true
			}
		}
	}
	found := []string{}
	for name := range names {
		if slices.ContainsFunc(c.Offers(namespace, name), func(o resolver.Offer) bool { return slices.Contains(o.Provides, api) }) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func provides(spec *corev1alpha1.AvailablePackageSpec, api corev1alpha1.ProvidedAPI) bool {
	return slices.ContainsFunc(spec.Versions, func(v corev1alpha1.AvailableVersion) bool { return slices.Contains(v.Provides, api) })
}

// perform takes the steps of a plan, and marks what the Package requires.
func (s *reconciliation) perform(ctx context.Context, d *dependencyView, k known) error {
	own, packages, dependents := snapshot.InstanceOf(s.pkg), k.packages, sync.OnceValue(func() graph { return dependentsBy(k.installed) })
	for _, step := range d.steps {
		if err := mayTake(own, step, packages[step.Instance]); err != nil {
			return err
		}
		if step.Create {
			if err := s.create(ctx, step, packages[step.For]); err != nil {
				return err
			}
			continue
		}
		err := s.change(ctx, packages[step.Instance], func(pkg corev1alpha1.GenericPackage) {
			pkg.PackageSpec().PackageRef.Version = step.Version
			if generated(pkg) {
				require(pkg, step.Needs, dependents()[step.Instance])
			}
		})
		if err != nil {
			return err
		}
	}
	for _, o := range d.result.Outcomes {
		if o.Satisfier == nil || packages[*o.Satisfier] == nil || !marked(own, packages[*o.Satisfier]) || planned(d.steps, *o.Satisfier) {
			continue
		}
		known := packages[*o.Satisfier]
		if resolver.IsChild(own, o.Dependency.Name, known.PackageSpec().PackageRef.Name, *o.Satisfier) {
			err := s.change(ctx, known, func(pkg corev1alpha1.GenericPackage) { inherit(pkg, s.pkg, o.Dependency.Name, true) })
			if err != nil {
				return err
			}
			known, _ = s.Fresh.Latest(known).(corev1alpha1.GenericPackage)
		}
		var needs []resolver.Need
		for _, other := range d.result.Outcomes {
			if other.Satisfier != nil && *other.Satisfier == *o.Satisfier {
				needs = append(needs, resolver.Need{Dependent: own, Dependency: other.Dependency})
			}
		}
		if known == nil {
			continue
		}
		if err := s.mark(ctx, known, func(pkg corev1alpha1.GenericPackage) { require(pkg, needs, dependents()[*o.Satisfier]) }); err != nil {
			s.Requeue(limits.ConflictRetry)
		}
	}
	return nil
}

// mayTake checks a step once more before it is taken: a package installs in its own scope, and changes what heeds it alone.
func mayTake(own resolver.Instance, step resolver.Step, known corev1alpha1.GenericPackage) error {
	if step.Create && step.Namespace == own.Namespace {
		return nil
	}
	if !step.Create && known != nil && known.GetDeletionTimestamp() == nil {
		if i := snapshot.InstalledOf(known); i.MayChange(own) {
			return nil
		}
	}
	return fmt.Errorf("%s neither installs nor changes %s, which is not in its scope", own, step.Instance)
}

// marked reports whether a package leaves marks on another one, and takes them off: on what was generated in its own scope.
func marked(own resolver.Instance, pkg corev1alpha1.GenericPackage) bool {
	return pkg.GetNamespace() == own.Namespace && generated(pkg) && pkg.PackageSpec().PackageRef != nil
}

// mark changes the marks on a package. They are for people: that they cannot be written is an event, and fails nothing but
// where the write raced.
func (s *reconciliation) mark(ctx context.Context, known corev1alpha1.GenericPackage, change func(corev1alpha1.GenericPackage)) error {
	err := s.change(ctx, known, change)
	if err == nil || apply.IsAbsent(err) {
		return nil
	}
	if queueing.Raced(err) {
		return err
	}
	s.Events.Eventf(s.pkg, nil, corev1.EventTypeWarning, eventUnmarked, "Depend", "%s", conditions.Cut(conditions.Message(err.Error()), limits.EventNote))
	return nil
}

func planned(steps []resolver.Step, i resolver.Instance) bool {
	return slices.ContainsFunc(steps, func(s resolver.Step) bool { return s.Instance == i })
}

func generated(pkg client.Object) bool { return pkg.GetLabels()[corev1alpha1.GeneratedLabel] == "true" }

// create creates a package for others, the first of which is the parent; nil for the Package itself.
func (s *reconciliation) create(ctx context.Context, step resolver.Step, parent corev1alpha1.GenericPackage) error {
	if parent == nil || snapshot.InstanceOf(parent) == snapshot.InstanceOf(s.pkg) {
		parent = s.pkg
	}
	pkg := corev1alpha1.ScopeOf(step.Namespace).NewPackage()
	pkg.SetNamespace(step.Namespace)
	pkg.SetName(step.Name)
	pkg.SetLabels(map[string]string{corev1alpha1.GeneratedLabel: "true"})
	pkg.SetFinalizers([]string{corev1alpha1.MetricsFinalizer})
	first := step.Needs[0]
	pkg.PackageSpec().PackageRef = &corev1alpha1.PackageReference{Name: step.Package, VersionSelection: corev1alpha1.VersionSelection{Version: step.Version}}
	inherit(pkg, parent, first.Dependency.Name, first.Dependent == snapshot.InstanceOf(parent))
	require(pkg, step.Needs, nil)
	if err := s.Client.Create(ctx, pkg); err != nil {
		return fmt.Errorf("install %s %s: %w", step.Package, step.Version, err)
	}
	s.Fresh.PutCreated(generatedOwner, pkg)
	return nil
}

// change patches a package where that changes it.
func (s *reconciliation) change(ctx context.Context, known corev1alpha1.GenericPackage, change func(corev1alpha1.GenericPackage)) error {
	pkg := copyOf(known)
	change(pkg)
	if equality.Semantic.DeepEqual(known, pkg) {
		return nil
	}
	if err := s.patch(ctx, known, pkg); err != nil {
		return fmt.Errorf("change %s: %w", snapshot.InstanceOf(known), err)
	}
	return nil
}

// drop releases what only an earlier revision required.
func (s *reconciliation) drop(ctx context.Context) error {
	d := s.required
	kept := slices.DeleteFunc(slices.Clone(d.entries), dropped)
	for _, entry := range d.entries {
		if dropped(entry) && !refersTo(kept, entry.PackageRef) {
			if err := s.release(ctx, entry); err != nil {
				return err
			}
		}
	}
	d.entries = kept
	return nil
}

func refersTo(entries []corev1alpha1.DependencyStatus, ref *corev1alpha1.DependencyReference) bool {
	return slices.ContainsFunc(entries, func(d corev1alpha1.DependencyStatus) bool {
		return d.PackageRef != nil && ref != nil && *d.PackageRef == *ref
	})
}

// release takes the marks of the Package off what it depended on, and deletes that where it was installed for this one, no other
// depends on it, and the policy is to delete it, unless what was installed of the Package goes on without it. What is in another
// scope is left alone.
func (s *reconciliation) release(ctx context.Context, entry corev1alpha1.DependencyStatus) error {
	if entry.PackageRef == nil {
		return nil
	}
	own, at := snapshot.InstanceOf(s.pkg), resolver.Instance{Namespace: entry.PackageRef.Namespace, Name: entry.PackageRef.Name}
	pkg, others, done := s.decideRelease(ctx, entry.Name, at)
	if pkg == nil {
		return nil
	}
	if done == nil {
		if names := elsewhere(own, others); len(names) > 0 && deletes(s.pkg, entry.Name, pkg) {
			s.warn("Release", fmt.Sprintf("%s stays, since %s depend on it. Delete it where nobody needs it.", at, firstOf(names)))
		}
		return s.mark(ctx, pkg, func(pkg corev1alpha1.GenericPackage) { releaseFrom(pkg, own, others) })
	}
	defer done()
	err := s.Client.Delete(ctx, pkg, client.Preconditions{UID: ptr.To(pkg.GetUID()), ResourceVersion: ptr.To(pkg.GetResourceVersion())})
	if err != nil && !apply.IsAbsent(err) {
		s.wake(func(name string) bool { return name == pkg.PackageSpec().PackageRef.Name })
		return fmt.Errorf("delete %s: %w", at, err)
	}
	return nil
}

// decideRelease returns what is released, nil for nothing, and what else depends on it. Where it is to be deleted, that counts
// for others until done is called.
func (s *reconciliation) decideRelease(
	ctx context.Context, dependency string, at resolver.Instance,
) (pkg corev1alpha1.GenericPackage, others []resolver.Instance, done func()) {
	own := snapshot.InstanceOf(s.pkg)
	s.resolving.mu.Lock()
	defer s.resolving.mu.Unlock()
	k := s.surveyed(ctx, own.Namespace)
	if pkg = k.packages[at]; pkg == nil || pkg.GetDeletionTimestamp() != nil || !marked(own, pkg) {
		return nil, nil, nil
	}
	if others = s.others(ctx, k, own, at); len(others) == 0 && deletes(s.pkg, dependency, pkg) && !s.leaves() {
		decided := s.resolving.decided[own]
		decided.deletes = at
		done = s.note(ctx, own, decided)
	}
	return pkg, others, done
}

// elsewhere returns the names of instances of other scopes.
func elsewhere(own resolver.Instance, all []resolver.Instance) []string {
	var names []string
	for _, i := range all {
		if i.Namespace != own.Namespace {
			names = append(names, i.String())
		}
	}
	slices.Sort(names)
	return names
}

// deletes reports whether a Package deletes what satisfied a dependency once nothing depends on it: what was generated for
// itself, where its policy says so.
func deletes(of corev1alpha1.GenericPackage, dependency string, pkg corev1alpha1.GenericPackage) bool {
	own, spec := snapshot.InstanceOf(of), of.PackageSpec().Dependencies
	return spec != nil && spec.DeletionPolicy == corev1alpha1.DeletionPolicyDelete && marked(own, pkg) &&
		resolver.IsChild(own, dependency, pkg.PackageSpec().PackageRef.Name, snapshot.InstanceOf(pkg))
}

// takeOver makes a generated package the user's own where the annotation says so.
func (s *reconciliation) takeOver(ctx context.Context) error {
	if !generated(s.pkg) || s.pkg.GetAnnotations()[corev1alpha1.AdoptAnnotation] != "true" {
		return nil
	}
	before, labels := copyOf(s.pkg), cloned(s.pkg.GetLabels())
	delete(labels, corev1alpha1.GeneratedLabel)
	s.pkg.SetLabels(labels)
	annotate(s.pkg, map[string]string{corev1alpha1.RequiredVersionsAnnotation: ""})
	for label := range labels {
		if isRequiredBy(label) {
			delete(labels, label)
		}
	}
	if err := s.patch(ctx, before, s.pkg); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("leave the package to its user: %w", err)
	}
	return nil
}

package repositories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

const availableInFlight = 8 // packages of a catalogue that are written at a time

// publish takes over the fetched content, and writes the parts of packages whose offers changed.
func (s *reconciliation) publish(ctx context.Context) error {
	for _, v := range s.views {
		if v.step == stepPublish {
			s.takeOver(v)
		} else if distrusted(*v) {
			s.withhold(v)
		}
	}

	err := s.merge(ctx)
	for _, v := range s.views {
		switch {
		case v.step != stepPublish:
		case err != nil:
			v.writeErr = err
		default:
			s.succeed(v)
		}
		st := s.states[v.repository.GetName()]
		v.last, v.published, v.conflicts = st.last, st.unreported, s.conflictsOf(v.repository.GetName())
		v.verification, v.withheld = st.verification, st.withheld
		if st.withheld && err != nil {
			v.writeErr = err
		}
	}

	if !queueing.Raced(err) && apierrors.HasStatusCause(err, "NamespaceTerminating") {
		return queueing.ErrEnd // the repositories are deleted with it
	}
	return err
}

// withhold drops the content of a repository, so that its offers are withdrawn. It is fetched in
// whole once it is trusted.
func (s *reconciliation) withhold(v *view) {
	st, name := s.states[v.repository.GetName()], v.repository.GetName()
	published := slices.ContainsFunc(slices.Collect(maps.Values(s.available)), func(p part) bool { return offeredBy(p, name) > 0 })
	if !published && st.last == nil && v.repository.RepositoryStatus().Artifact == nil {
		return // it was never fetched, or is withheld already
	}
	s.mergeAll(name, st.content)
	st.withheld, st.content, st.last, st.verification, st.unreported = true, nil, nil, nil, nil
	s.memory.account.Count(memoryKey(v.repository.GetNamespace(), name), 0)
}

// takeOver makes the result of a fetch the content of its repository. It can be called again after
// an error.
func (s *reconciliation) takeOver(v *view) {
	st, fetched := s.states[v.repository.GetName()], v.attempt.Out.result
	if fetched.content == nil || fetched.content == st.content {
		return
	}

	before := st.content
	st.content, st.withheld = fetched.content, false
	artifact := v.repository.RepositoryStatus().Artifact
	switch {
	case before != nil:
		for _, name := range changed(before, st.content) {
			s.pending[name] = struct{}{}
		}
	case st.last != nil && !st.last.incomplete && artifact != nil && artifact.Digest == fetched.digest:
	default:
		s.mergeAll(v.repository.GetName(), st.content)
	}

	if st.last != nil {
		st.last.incomplete = true // until all of it is published, its validator does not describe the published content
	}
}

// succeed records that the result of a fetch is published.
func (s *reconciliation) succeed(v *view) {
	st, a := s.states[v.repository.GetName()], v.attempt
	last := &success{input: a.In, validator: a.Out.result.validator, retryValue: a.RetryValue, at: s.now, jitter: s.jitter()}
	if a.Out.result.notModified && st.last != nil {
		if v.repository.RepositorySpec().Source.Image == nil {
			last.validator = st.last.validator
		}
		// If the source had no changes, its versions might still have been shadowed, or changed by
		// other clients.
		last.incomplete = st.last.incomplete
	}

	if outcome := a.Out.result.verification; outcome != nil || a.In.keys == "" {
		st.verification = &verification{outcome: outcome, validator: last.validator}
	}

	st.last = last
	if !a.Out.result.notModified {
		st.unreported = a.Out.result
	}

	s.memory.Set(&st.attempt, nil)
	next, wait := decide(view{repository: v.repository, input: v.input, last: last, fetchStarted: st.fetchStarted, now: s.now, pace: s.Pace})
	if wait > 0 || next == stepFetch {
		s.Requeue(wait)
	}
}

// merge merges the pending packages, and writes the parts that differ from the published ones.
func (s *reconciliation) merge(ctx context.Context) error {
	if len(s.pending) == 0 {
		return nil
	}

	parts := s.available.partsOf()
	var mu sync.Mutex // of the catalogue's memory
	names := slices.Sorted(maps.Keys(s.pending))
	errs := make([]error, len(names))
	group, _ := panics.NewGroup(ctx, availableInFlight, "publishing")
	for i, name := range names {
		group.Go(func() error {
			errs[i] = panics.Guard(ctx, "publishing package "+name, func() error { return s.mergePackage(ctx, &mu, name, parts[name]) })
			return nil
		})
	}

	_ = group.Wait()
	for i, name := range names {
		if errs[i] == nil {
			delete(s.pending, name)
		}
	}

	return firstErrors(errs)
}

// firstErrors joins the first errors, in their order, so that a status has the same text at each
// try. Writes that raced are repeated, and count only if there are no other errors.
func firstErrors(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if slices.ContainsFunc(errs, func(err error) bool { return !queueing.Raced(err) }) {
		errs = slices.DeleteFunc(errs, queueing.Raced)
	}
	return errors.Join(errs[:min(len(errs), repositoryStatusNumber)]...)
}

// mergePackage merges the offers of a package from all repositories, and writes the parts that
// differ.
func (s *reconciliation) mergePackage(ctx context.Context, mu *sync.Mutex, name string, parts []part) error {
	if size := s.unpackedSize(name); size > limits.SmallPackageBytes {
		release, err := s.memory.account.Acquire(ctx, s.namespace, limits.LoadWeight*size)
		if err != nil {
			return err
		}
		defer release()
	}

	offers, existing, err := s.offersOf(ctx, name, parts)
	if err != nil {
		return err
	}

	merged, conflicts := repository.Merge(offers, existing)
	if len(merged) >= len(parts) {
		slices.Reverse(merged) // a version that moves to a later part is never in none
	}

	kept := map[string]bool{}
	for i := range merged {
		kept[repository.ObjectName(name, merged[i].Part)] = true
		if err := s.writePart(ctx, mu, &merged[i]); err != nil {
			return err
		}
	}

	for _, p := range parts {
		if !kept[p.object.GetName()] {
			if err := s.deletePart(ctx, mu, p); err != nil {
				return err
			}
		}
	}

	mu.Lock()
	defer mu.Unlock()
	s.noteConflicts(name, conflicts)
	s.noteShadowed(parts, merged)
	return nil
}

// unpackedSize returns how many bytes the contents of the repositories have of a package.
func (s *reconciliation) unpackedSize(name string) (size int64) {
	for _, v := range s.views {
		if content := s.states[v.repository.GetName()].content; content != nil {
			size += content.packages[name].size
		}
	}
	return size
}

// offersOf returns the repositories' offers of a package: from their contents, or else from their
// published offers.
func (s *reconciliation) offersOf(
	ctx context.Context, name string, parts []part,
) (offers []repository.Offer, existing []corev1alpha1.AvailablePackageSpec, err error) {
	existing, whole, err := s.existing(ctx, parts)
	if err != nil {
		return nil, nil, err
	}

	for _, v := range s.views {
		st, offering := s.states[v.repository.GetName()], v.repository.GetName()
		var pkg *repository.Package
		if st.content != nil {
			pkg, err = st.content.unpack(name)
		} else if whole && !st.withheld {
			pkg = publishedOf(offering, existing)
		}
		if err != nil {
			return nil, nil, err
		}
		if pkg != nil && len(pkg.Versions) > 0 {
			offers = append(offers, repository.Offer{
				Repository: offering, Priority: st.priority, Limited: st.limited, Created: v.repository.GetCreationTimestamp().Time,
				Content: &repository.Content{Packages: []repository.Package{*pkg}},
			})
		}
	}

	return offers, existing, nil
}

// existing returns the published specs of a package. They are read in whole if the content of a
// repository that offers versions is not in memory.
func (s *reconciliation) existing(ctx context.Context, parts []part) (specs []corev1alpha1.AvailablePackageSpec, whole bool, err error) {
	for _, p := range parts {
		for i := range p.spec.Versions {
			st := s.states[p.spec.Versions[i].Repository]
			whole = whole || st != nil && st.content == nil
		}
		specs = append(specs, *p.spec)
	}

	if !whole {
		return specs, false, nil
	}

	for i, p := range parts {
		found := corev1alpha1.ScopeOf(s.namespace).NewAvailablePackage()
		err := s.Reader.Get(ctx, keyOf(p.object), found)
		if err != nil && !apply.IsAbsent(err) {
			return nil, false, fmt.Errorf("read %s: %w", p.object.GetName(), err)
		}
		specs[i] = *found.AvailableSpec()
	}

	return specs, true, nil
}

// publishedOf returns the part of a package that is published for one repository.
func publishedOf(name string, specs []corev1alpha1.AvailablePackageSpec) *repository.Package {
	pkg := &repository.Package{}
	for i := range specs {
		pkg.Name = specs[i].PackageName
		if specs[i].Display != nil {
			pkg.Display = specs[i].Display
		}
		for _, v := range specs[i].Versions {
			if v.Repository == name {
				v.Repository = ""
				pkg.Versions = append(pkg.Versions, v)
			}
		}
	}

	return pkg
}

// writePart creates or updates a part, unless it is published already.
func (s *reconciliation) writePart(ctx context.Context, mu *sync.Mutex, desired *corev1alpha1.AvailablePackageSpec) error {
	desired.Versions = canonical(desired.Versions)
	name, digest := repository.ObjectName(desired.PackageName, desired.Part), digestOf(desired)
	object := corev1alpha1.ScopeOf(s.namespace).NewAvailablePackage()
	object.SetNamespace(s.namespace)
	object.SetName(name)
	found := s.available[name]
	var err error
	switch {
	case found.object == nil:
		*object.AvailableSpec() = *desired
		object.SetAnnotations(map[string]string{writtenAnnotation: digest})
		err = s.Client.Create(ctx, object)
	case found.digest == digest:
		return nil
	default:
		copyMeta(object, found.object)
		object.GetAnnotations()[writtenAnnotation] = digest
		*object.AvailableSpec() = *desired
		err = s.Client.Update(ctx, object)
	}
	if apply.IsAbsent(err) {
		s.Fresh.Deleted(object.GetUID())
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", corev1alpha1.ScopeOf(s.namespace).Kind("AvailablePackage"), name, err)
	}

	Compact(object)
	if found.object == nil {
		s.Fresh.PutCreated(owner(s.namespace), object)
	} else {
		s.Fresh.Put(object)
	}

	mu.Lock()
	defer mu.Unlock()
	s.published[name] = published{desired.PackageName, object.GetAnnotations()[digestAnnotation]}
	return nil
}

// copyMeta copies the metadata of an object in the cache, which have to be sent with an update.
func copyMeta(to, from client.Object) {
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetLabels(maps.Clone(from.GetLabels()))
	to.SetOwnerReferences(slices.Clone(from.GetOwnerReferences()))
	to.SetFinalizers(slices.Clone(from.GetFinalizers()))
	annotations := maps.Clone(from.GetAnnotations())
	delete(annotations, digestAnnotation)
	delete(annotations, offersAnnotation)
	to.SetAnnotations(annotations)
}

// deletePart deletes a part that has no versions any more.
func (s *reconciliation) deletePart(ctx context.Context, mu *sync.Mutex, p part) error {
	err := s.Client.Delete(ctx, p.object, client.Preconditions{UID: ptr.To(p.object.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apply.IsAbsent(err) {
		return fmt.Errorf("delete %s %s: %w", corev1alpha1.ScopeOf(s.namespace).Kind("AvailablePackage"), p.object.GetName(), err)
	}
	if len(p.object.GetFinalizers()) == 0 {
		s.Fresh.Deleted(p.object.GetUID())
	}
	mu.Lock()
	defer mu.Unlock()
	delete(s.published, p.object.GetName())
	return nil
}

// noteShadowed requests a fetch in whole of repositories whose versions are no longer published
// anywhere. The caller holds the lock of the catalogue's memory.
func (s *reconciliation) noteShadowed(parts []part, merged []corev1alpha1.AvailablePackageSpec) {
	type offer struct{ version, repository string }
	kept := map[offer]bool{}
	for i := range merged {
		for _, v := range merged[i].Versions {
			kept[offer{v.Version, v.Repository}] = true
		}
	}

	for _, p := range parts {
		for _, v := range p.spec.Versions {
			st := s.states[v.Repository]
			if st != nil && st.content == nil && st.last != nil && !kept[offer{v.Version, v.Repository}] {
				st.last.incomplete = true
				s.Requeue(0)
			}
		}
	}
}

// noteConflicts records the conflicts of a package, which its repositories report.
func (s *reconciliation) noteConflicts(name string, conflicts map[string][]string) {
	if len(conflicts) == 0 {
		delete(s.conflicts, name)
		return
	}
	s.conflicts[name] = conflicts
}

// conflictsOf returns the versions that are not published as a repository has them; nil if that is
// unknown.
func (s *reconciliation) conflictsOf(repository string) []string {
	if s.states[repository].content == nil {
		return nil
	}
	all := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.conflicts)) {
		all = append(all, s.conflicts[name][repository]...)
	}
	return all
}

package repositories

import (
	"context"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const availableRepair = 10 * time.Second // between repairs of changes by other clients to a catalogue

// available are the published parts of packages by the names of their objects, in the form of the
// caches.
type available map[string]part

// part is a published AvailablePackage. spec is unpacked only if needed.
type part struct {
	object corev1alpha1.GenericAvailablePackage
	spec   *corev1alpha1.AvailablePackageSpec
	digest string
}

// readAvailable returns the parts of a namespace. They are shared with the cache.
func (r *Reconciler) readAvailable(ctx context.Context, namespace string) (available, error) {
	list := corev1alpha1.ScopeOf(namespace).NewAvailablePackageList()
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}

	all := available{}
	add := func(object corev1alpha1.GenericAvailablePackage) {
		all[object.GetName()] = part{object: object, spec: object.AvailableSpec(), digest: object.GetAnnotations()[digestAnnotation]}
	}
	for _, cached := range list.GenericAvailablePackages() {
		if object, ok := r.Fresh.Latest(cached).(corev1alpha1.GenericAvailablePackage); ok {
			add(object)
		}
	}

	for _, created := range r.Fresh.Created(owner(namespace)) {
		if object := created.(corev1alpha1.GenericAvailablePackage); all[object.GetName()].object == nil {
			add(object)
		}
	}

	return all, nil
}

// owner identifies the catalogue of a namespace in the mutation cache.
func owner(namespace string) string { return "catalogue of " + namespace }

// partsOf returns the published parts of packages by package, in their order.
func (a available) partsOf() map[string][]part {
	byPackage := map[string][]part{}
	for _, p := range a {
		byPackage[p.spec.PackageName] = append(byPackage[p.spec.PackageName], p)
	}

	for _, parts := range byPackage {
		slices.SortFunc(parts, func(a, b part) int {
			if a.spec.Part != b.spec.Part {
				return int(a.spec.Part) - int(b.spec.Part)
			}
			return strings.Compare(a.object.GetName(), b.object.GetName())
		})
	}

	return byPackage
}

// compare enqueues packages if other clients changed or deleted a part of them since it was
// written.
func (s *reconciliation) compare() {
	var changed []string
	for name, p := range s.available {
		if s.published[name].digest != p.digest && p.object.GetDeletionTimestamp() == nil {
			changed = append(changed, name)
		}
	}

	for name := range s.published {
		if s.available[name].object == nil {
			changed = append(changed, name)
		}
	}

	if len(changed) == 0 {
		return
	}

	if wait := s.repaired.Add(s.Pace.Of(availableRepair)).Sub(s.now); wait > 0 && !s.repaired.IsZero() {
		s.Requeue(wait)
		return
	}

	s.repaired = s.now
	for _, name := range changed {
		s.repair(name)
	}
}

// repair enqueues the package of a changed part. A repository whose content is not in memory is
// fetched again.
func (s *reconciliation) repair(name string) {
	if p, found := s.available[name]; found {
		s.pending[p.spec.PackageName] = struct{}{}
		s.published[name] = published{p.spec.PackageName, p.digest}
	} else {
		s.pending[s.published[name].packageName] = struct{}{}
		delete(s.published, name)
	}
	for _, st := range s.states {
		if st.content == nil && st.last != nil {
			st.last.incomplete = true
		}
	}
}

// mergeAll enqueues all packages of a repository.
func (s *reconciliation) mergeAll(repository string, content *packed) {
	if content != nil {
		for name := range content.packages {
			s.pending[name] = struct{}{}
		}
	}
	for _, p := range s.available {
		if offeredBy(p, repository) > 0 {
			s.pending[p.spec.PackageName] = struct{}{}
		}
	}
}

// offeredBy returns how many versions of a part a repository offers.
func offeredBy(p part, repository string) (n int) {
	for i := range p.spec.Versions {
		if p.spec.Versions[i].Repository == repository {
			n++
		}
	}
	return n
}

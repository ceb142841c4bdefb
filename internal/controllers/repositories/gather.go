package repositories

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
)

// gather reads the repositories of a namespace and their published offers, in their
// latest known states.
func (r *Reconciler) gather(ctx context.Context, namespace string) (*reconciliation, error) {
	s := &reconciliation{Reconciler: r, namespace: namespace, now: r.Now()}
	var err error
	if s.available, err = r.readAvailable(ctx, namespace); err != nil {
		return nil, err
	}

	list := corev1alpha1.ScopeOf(namespace).NewPackageRepositoryList()
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}

	var known bool
	s.catalogue, known = r.catalogueOf(namespace)
	if !known {
		for name, part := range s.available {
			s.published[name] = published{part.spec.PackageName, part.object.GetAnnotations()[writtenAnnotation]}
		}
	}

	repositories, err := s.present(ctx, list.GenericRepositories())
	if err != nil {
		return nil, err
	}

	for _, repository := range repositories {
		s.views = append(s.views, s.gatherRepository(repository))
	}

	slices.SortFunc(s.views, func(a, b *view) int { return cmp.Compare(a.repository.GetName(), b.repository.GetName()) })
	s.withdraw()
	s.compare()
	return s, nil
}

// present returns the repositories in their latest known states, without the ones that are being
// deleted. If a repository has published offers but is not in the cache, it is read from the API
// server: the caches of repositories and of their offers are filled independently of each other.
func (s *reconciliation) present(
	ctx context.Context, cached []corev1alpha1.GenericPackageRepository,
) ([]corev1alpha1.GenericPackageRepository, error) {
	var present []corev1alpha1.GenericPackageRepository
	known := map[string]bool{}
	for _, c := range cached {
		known[c.GetName()] = true
		if repository, ok := s.Fresh.Latest(c).(corev1alpha1.GenericPackageRepository); ok && repository.GetDeletionTimestamp() == nil {
			present = append(present, repository)
		}
	}

	for _, part := range s.available {
		for i := range part.spec.Versions {
			name := part.spec.Versions[i].Repository
			if known[name] || len(validation.IsDNS1123Subdomain(name)) > 0 {
				continue
			}
			known[name] = true
			repository := corev1alpha1.ScopeOf(s.namespace).NewPackageRepository()
			err := s.Reader.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, repository)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read repository %s: %w", name, err)
			}
			if err == nil && repository.GetDeletionTimestamp() == nil {
				present = append(present, repository)
			}
		}
	}

	return present, nil
}

// gatherRepository returns the view of one repository, with the versions of the Secrets and
// ConfigMaps that it names.
func (s *reconciliation) gatherRepository(repository corev1alpha1.GenericPackageRepository) *view {
	st := s.stateOf(repository)
	refs := refsOf(&repository.RepositorySpec().Source, s.namespaceOf(repository))
	s.Sources.Use(keyOf(repository), refs)
	v := &view{repository: repository, attempt: s.memory.Of(&st.attempt), fetchStarted: st.fetchStarted, now: s.now, pace: s.Pace}
	var versions map[string]string
	versions, v.waiting, v.inputError = s.Sources.Versions(refs)
	if generation := repository.GetGeneration(); st.generation != generation {
		st.source, st.generation = sourceHash(repository.RepositorySpec().Source), generation
	}

	v.input = input{source: st.source, versions: fmt.Sprint(versions)}
	s.gatherPolicy(v)
	v.last, v.verification = st.last, st.verification
	if priority, limited := repository.RepositorySpec().Priority, isLimited(repository); priority != st.priority || limited != st.limited {
		st.priority, st.limited = priority, limited
		s.mergeAll(repository.GetName(), st.content)
	}

	return v
}

// stateOf returns the memory of a repository, or else the record of an earlier process in its
// status.
func (s *reconciliation) stateOf(repository corev1alpha1.GenericPackageRepository) *state {
	st := s.states[repository.GetName()]
	if st != nil && st.uid == repository.GetUID() {
		return st
	}
	if st != nil {
		s.forget(repository.GetName(), st)
	}
	st = &state{uid: repository.GetUID(), priority: repository.RepositorySpec().Priority, limited: isLimited(repository)}
	st.last = s.restore(repository)
	s.states[repository.GetName()] = st
	return st
}

// isLimited reports whether not all namespaces see a repository.
func isLimited(repository corev1alpha1.GenericPackageRepository) bool {
	return repository.GetNamespace() == "" && repository.RepositorySpec().NamespaceSelector != nil
}

// restore returns the success that a status records; nil if its content is not published, or from
// another source.
func (s *reconciliation) restore(repository corev1alpha1.GenericPackageRepository) *success {
	status := repository.RepositoryStatus()
	ready := meta.FindStatusCondition(status.Conditions, corev1alpha1.ConditionReady)
	if status.Artifact == nil || ready == nil || ready.Status != metav1.ConditionTrue ||
		!conditions.IsTrueFor(status.Conditions, corev1alpha1.ConditionReady, repository.GetGeneration()) {
		return nil
	}

	var published offersDigest
	var cached int64
	for _, p := range s.available {
		published.addPart(p, repository.GetName())
		for i := range p.spec.Versions {
			if p.spec.Versions[i].Repository == repository.GetName() {
				cached += cachedBytes(p.spec.Versions[i])
			}
		}
	}

	s.memory.account.Count(memoryKey(repository.GetNamespace(), repository.GetName()), cached)
	return &success{
		input:    input{source: sourceHash(repository.RepositorySpec().Source)},
		restored: true, validator: status.Artifact.Validator, retryValue: status.LastHandledRetry,
		incomplete: published.String() != status.Artifact.OffersDigest,
	}
}

// withdraw merges the packages of deleted repositories without them, and forgets the repositories.
func (s *reconciliation) withdraw() {
	present := map[string]bool{}
	for _, v := range s.views {
		present[v.repository.GetName()] = true
	}

	for name, st := range s.states {
		if present[name] {
			continue
		}
		s.mergeAll(name, st.content)
		s.forget(name, st)
	}

	for _, part := range s.available {
		for i := range part.spec.Versions {
			if !present[part.spec.Versions[i].Repository] {
				s.pending[part.spec.PackageName] = struct{}{}
				break
			}
		}
	}
}

// forget drops the memory of a deleted repository.
func (s *reconciliation) forget(name string, st *state) {
	s.memory.Set(&st.attempt, nil)
	delete(s.states, name)
	for _, conflicts := range s.conflicts {
		delete(conflicts, name)
	}
	key := types.NamespacedName{Namespace: s.namespace, Name: name}
	s.Sources.Use(key, nil)
	s.memory.account.Count(memoryKey(key.Namespace, key.Name), 0)
}

// namespaceOf returns the namespace of the objects that a source names: for a
// ClusterPackageRepository the manager's.
func (r *Reconciler) namespaceOf(repository corev1alpha1.GenericPackageRepository) string {
	return cmp.Or(repository.GetNamespace(), r.Namespace)
}

package objectdeployments

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	inmemory "lockstep.run/lockstep/test/memory"
)

// write is a write of a crashed engine; own means that it is about our own kinds.
type write struct {
	do  func() error
	own bool
}

// restoration records the effects of backups and their restoration.
type restoration struct {
	backups []backup
	// owners are the UIDs that the deployment had.
	owners map[types.UID]bool
	// ever are all sets that were seen.
	ever map[types.UID]*set
	// rewound is by how much resource versions of the objects went back.
	rewound int64
	// returned are objects that were restored while watches continued: decisions can be based on
	// older states.
	returned map[types.UID]bool
	// forgotten are objects that no revision of the restored owner need contain.
	forgotten map[types.UID]bool
	// rewoundHome means that our own kinds were restored.
	rewoundHome bool
	// kept means that the deployment was deleted after a restoration, before a set of its own had
	// claimed objects. These objects stay, because no record shows that it has written them, or
	// whether it was orphaned.
	kept bool
	// inUse are the kinds in use when the deployment was deleted.
	inUse map[schema.GroupKind]bool
}

func newRestoration() restoration {
	return restoration{owners: map[types.UID]bool{}, ever: map[types.UID]*set{}, returned: map[types.UID]bool{}, forgotten: map[types.UID]bool{}}
}

// backup is a backup of home and of the target, at one moment.
type backup struct{ own, server *inmemory.Backup }

// keepsRestored reports whether the deployment was restored, and has no set of its own that has
// claimed objects, or has not seen it.
func (s *simulation) keepsRestored() bool {
	if !s.rewoundHome {
		return false
	}
	if s.deployment().Annotations[corev1alpha1.OrphanedAnnotation] != "" {
		return true
	}
	return !slices.ContainsFunc(s.storedSets(), func(set *corev1alpha1.ObjectSet) bool {
		return objectsets.DeploymentOf(set) == s.owner && !objectsets.Unwritten(set)
	})
}

// storedSets returns the sets that home has.
func (s *simulation) storedSets() []*corev1alpha1.ObjectSet {
	var sets []*corev1alpha1.ObjectSet
	for _, key := range s.own.Keys() {
		if key.Kind == "ObjectSet" {
			sets = append(sets, decode(s.own.Get(key), &corev1alpha1.ObjectSet{}))
		}
	}
	return sets
}

// save makes a backup while the deployment is in use: before its finalizer and the name of its
// target are recorded, no objects are rolled out.
func (s *simulation) save() {
	d := s.deployment()
	if d == nil || d.DeletionTimestamp != nil || len(d.Finalizers) == 0 || s.remote && d.Annotations[corev1alpha1.TargetClusterAnnotation] == "" {
		return
	}
	s.logf("backup %d", len(s.backups))
	s.backups = append(s.backups, backup{s.own.Backup(), s.server.Backup()})
}

// saveWithoutSet makes a backup right before the engine creates the first set.
func (s *simulation) saveWithoutSet() {
	for s.deployment().Annotations[corev1alpha1.TargetClusterAnnotation] == "" && s.engine.step() {
	}
	s.save()
}

// restoreHome takes our own kinds back to a backup. A snapshot of etcd keeps the UIDs, and includes
// the objects if they are in the same cluster; otherwise they have new UIDs and no statuses. The
// process is restarted.
func (s *simulation) restoreHome() {
	if len(s.backups) == 0 {
		return
	}
	b := sample(s, "backup", s.backups)
	s.crash()
	s.engine.crash()
	s.late, s.rewoundHome = true, true
	for _, key := range s.controlled() {
		s.forgotten[s.get(key).uid] = true
	}
	if snapshot := rapid.Bool().Draw(s.t, "snapshot"); !snapshot {
		s.logf("restore home with new UIDs")
		s.recreate(b.own)
	} else if s.remote {
		s.logf("restore home")
		s.own.Restore(b.own)
	} else {
		s.logf("restore the cluster")
		s.rewind(b.server)
	}
	s.flying = slices.DeleteFunc(s.flying, func(w write) bool { return w.own })
	s.owner = s.deployment().UID
	s.owners[s.owner] = true
	s.deleting, s.orphaned, s.kept = false, nil, false
	s.setDeleted = true // what lost revisions wrote is not known
	s.readSets()
	s.late = false
	s.engine = newProcess(s)
}

// recreate replaces our own kinds by a backup's.
func (s *simulation) recreate(b *inmemory.Backup) {
	other := func(key objects.Key) bool { return key.Group != corev1alpha1.GroupVersion.Group }
	for _, key := range slices.DeleteFunc(s.own.Keys(), other) {
		_, _ = s.own.Edit(key, "", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		if s.own.Get(key) != nil {
			s.end(key)
		}
	}
	for _, key := range slices.DeleteFunc(b.Keys(), other) {
		u := b.Get(key).DeepCopy()
		delete(u.Object, "status")
		u.SetDeletionTimestamp(nil)
		if _, err := s.own.Create(key, u, ""); err != nil {
			s.failf("restore %s: %v", key, err)
		}
	}
}

// readSets replaces the known state of sets by their records.
func (s *simulation) readSets() {
	s.sets = nil
	for _, set := range s.storedSets() {
		if objectsets.DeploymentOf(set) != s.owner {
			continue
		}
		if is := s.ever[set.UID]; is != nil {
			is.claimed, is.opened, is.begun, is.ready, is.archived, is.proved = false, 0, 0, 0, false, false
			if objectsets.Renumbered(set) { // it was activated, and the later number is undone, too
				is.number = set.Status.Revision
			}
		}
		s.noteSet(set)
	}
}

// rewind takes objects back to a backup, with their resource versions.
func (s *simulation) rewind(b *inmemory.Backup) {
	s.serve()
	s.flying = slices.DeleteFunc(s.flying, func(w write) bool { return !w.own })
	before := s.server.Version()
	s.server.Restore(b)
	s.rewound += before + 1 - s.server.Version()
	for _, key := range universe {
		s.past[key] = append(s.past[key], moment{s.when(s.server.Version()), s.get(key)})
		s.note(key)
	}
}

// restoreTarget takes objects back to a backup: by a snapshot of etcd, after which another session
// starts, or one by one, and recreates the deleted ones.
func (s *simulation) restoreTarget() {
	if len(s.backups) == 0 || s.deleting {
		return
	}
	b := sample(s, "backup", s.backups)
	if s.remote && rapid.Bool().Draw(s.t, "snapshot") {
		s.away = true
		for s.engine.resume != nil {
			s.engine.step()
		}
		s.logf("restore the target")
		s.rewind(b.server)
		s.pending, s.away = nil, false
		s.engine.connect()
		return
	}
	s.logf("restore objects")
	for _, key := range universe {
		if s.server.Serves(key.GroupKind()) && rapid.Bool().Draw(s.t, "restored") {
			s.restore(key, b.server.Get(key))
		}
	}
}

// restore takes an object back to its saved state.
func (s *simulation) restore(key objects.Key, saved *unstructured.Unstructured) {
	live := s.server.Get(key)
	var err error
	switch {
	case s.released(key): // it would be the deployment's again, which removes it as one that no revision has, but after a restart alone
	case saved == nil && live != nil:
		s.end(key)
	case saved == nil, live != nil && objectOf(live).fixed != objectOf(saved).fixed: // which is refused
	case live == nil:
		u := saved.DeepCopy()
		delete(u.Object, "status")
		u.SetDeletionTimestamp(nil)
		manager := sample(s, "manager", []string{"", "backup"})
		if manager != "" {
			u.SetManagedFields(nil)
		}
		u, err = s.server.Create(key, u, manager)
		if err == nil && manager == "" {
			s.engineMade[u.GetUID()] = s.engineMade[saved.GetUID()] // by its managedFields
		}
	default:
		_, err = s.server.Edit(key, "backup", func(u *unstructured.Unstructured) {
			u.Object["spec"] = saved.DeepCopy().Object["spec"]
			u.SetLabels(saved.GetLabels())
			u.SetAnnotations(saved.GetAnnotations())
			u.SetOwnerReferences(saved.GetOwnerReferences())
		})
	}
	if err != nil {
		s.failf("restore %s: %v", key, err)
	}
	if o := s.note(key); o != nil {
		s.returned[o.uid] = true
	}
}

// restoreOne deletes an object and restores it from a backup, and the engine cannot write it after
// that.
func (s *simulation) restoreOne() {
	all := s.controlled()
	if len(all) == 0 {
		return
	}
	key := sample(s, "key", all)
	saved := s.server.Get(key)
	s.logf("restore %s", key)
	s.end(key)
	s.restore(key, saved)
	s.denied[key] = true
}

// released reports whether an archived set retains an object by its record.
func (s *simulation) released(key objects.Key) bool {
	return slices.ContainsFunc(s.storedSets(), func(set *corev1alpha1.ObjectSet) bool {
		return slices.ContainsFunc(set.Status.Retained, func(ref corev1alpha1.RetainedObjectReference) bool {
			return ref.Kind == key.Kind && ref.Name == key.Name
		})
	})
}

// note records the consequences of the restoration of an object.
func (s *simulation) note(key objects.Key) *object {
	o := s.get(key)
	if o == nil {
		return nil
	}
	s.loose[o.uid], s.forgotten[o.uid] = true, true
	if !s.ours(o) {
		s.stripped[o.uid] = true
		delete(s.orphaned, o.uid)
	}
	return o
}

// when returns the position of an object's resource version in the order of all times.
func (s *simulation) when(version int64) int64 { return version + s.rewound }

// ours reports whether the deployment controls an object, or did before a restoration.
func (s *simulation) ours(o *object) bool { return s.owners[o.controller()] }

func (s *simulation) serverOf(key objects.Key) *inmemory.Server {
	if key.Group == corev1alpha1.GroupVersion.Group {
		return s.own
	}
	return s.server
}

// hidden reports whether the watches of kinds in use do not show a forgotten object.
func (s *simulation) hidden(key objects.Key, o *object, inUse map[schema.GroupKind]bool) bool {
	return s.forgotten[o.uid] && (!o.labelled || !inUse[key.GroupKind()])
}

// kindsInUse returns the kinds of the objects of revisions that are not archived.
func (s *simulation) kindsInUse() map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, set := range s.sets {
		for _, ph := range set.template.phases {
			for _, w := range ph {
				kinds[w.key.GroupKind()] = kinds[w.key.GroupKind()] || !set.archived
			}
		}
	}
	return kinds
}

// collectDangling plays the garbage collector if the owner is in the cluster of its objects: it
// deletes objects that belonged to the owner before a restoration, and removes its reference from
// objects that have another owner, too. It reports whether there was such an object.
func (s *simulation) collectDangling() bool {
	done := false
	for _, key := range s.controlled() {
		o := s.get(key)
		if s.remote || o.controller() == s.owner || o.terminating {
			continue
		}
		others := func(ref metav1.OwnerReference) bool { return ref.UID == s.owner || !s.owners[ref.UID] }
		done = true
		left := slices.DeleteFunc(slices.Clone(s.server.Get(key).GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return !others(ref) })
		if len(left) == 0 {
			s.logf("the garbage collector deletes %s", key)
			s.end(key)
			continue
		}
		s.logf("the garbage collector takes the reference off %s", key)
		if _, err := s.server.Edit(key, "other", func(u *unstructured.Unstructured) { u.SetOwnerReferences(left) }); err != nil {
			s.failf("take the reference off %s: %v", key, err)
		}
	}
	return done
}

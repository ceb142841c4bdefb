package hostedclusterpackages

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/queueing"
)

const hostedWrites = 8 // Packages of one that are written at a time

// act creates, updates and removes Packages. The updates are in the queue of the recorded status.
func (s *reconciliation) act(ctx context.Context) error {
	type write struct {
		namespace string
		send      func(context.Context, string) (*corev1alpha1.Package, error)
		pkg       *corev1alpha1.Package
		err       error
	}

	var writes []*write
	for _, i := range append(s.create, s.update...) {
		writes = append(writes, &write{namespace: s.targets[i].namespace, send: s.apply})
	}

	for _, i := range s.remove {
		writes = append(writes, &write{namespace: s.surplus[i].namespace, send: s.delete})
	}

	group, _ := panics.NewGroup(ctx, hostedWrites, "writing Packages")
	for _, w := range writes {
		group.Go(func() error {
			w.err = panics.Guard(ctx, "writing Package "+w.namespace+"/"+s.owner.Name, func() (err error) {
				w.pkg, err = w.send(ctx, w.namespace)
				return err
			})
			return nil
		})
	}

	_ = group.Wait()
	var errs []error
	for _, w := range writes {
		switch {
		case w.err == nil && w.pkg != nil:
			s.wrote(w.pkg)
		case queueing.Raced(w.err):
			errs = append(errs, w.err)
		case w.err != nil:
			s.refuse(w.namespace, s.packages[w.namespace], w.err)
			s.Requeue(time.Millisecond) // to report it
		}
	}

	return errors.Join(errs...)
}

// wrote remembers the response to an apply.
func (s *reconciliation) wrote(pkg *corev1alpha1.Package) {
	delete(s.state.refusals, pkg.Namespace)
	if s.packages[pkg.Namespace] == nil {
		s.Fresh.PutCreated(string(s.owner.UID), pkg)
	} else {
		s.Fresh.Put(pkg)
	}
	if input, err := s.inputOf(pkg); err == nil {
		s.state.applied[pkg.UID] = input
	}
}

// apply writes the fields of a Package that the template sets.
func (s *reconciliation) apply(ctx context.Context, namespace string) (*corev1alpha1.Package, error) {
	known, verb := s.packages[namespace], "create"
	if known != nil {
		verb = "update"
	}

	if known != nil && !metav1.IsControlledBy(known, s.owner) {
		if err := s.stays(ctx); err != nil {
			return nil, err
		}
	}

	body := s.template.body(namespace, known)
	err := s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(corev1alpha1.FieldManager))
	if err != nil {
		return nil, fmt.Errorf("%s Package %s/%s: %w", verb, namespace, s.owner.Name, err)
	}

	pkg := &corev1alpha1.Package{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, pkg); err != nil {
		return nil, fmt.Errorf("read the response to the %s of Package %s/%s: %w", verb, namespace, s.owner.Name, err)
	}
	return pkg, nil
}

// stays asks the API server whether the owner is being deleted, after the Package was read that it
// does not control: if the garbage collector took the reference off, the owner was being deleted
// before. Then a conflict is returned.
func (s *reconciliation) stays(ctx context.Context) error {
	live := &corev1alpha1.HostedClusterPackage{}
	err := s.Reader.Get(ctx, client.ObjectKeyFromObject(s.owner), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read HostedClusterPackage %s: %w", s.owner.Name, err)
	}
	if err == nil && live.UID == s.owner.UID && live.DeletionTimestamp == nil {
		return nil
	}
	return apierrors.NewConflict(corev1alpha1.Resource("hostedclusterpackages"), s.owner.Name, errors.New("it is being deleted"))
}

// delete deletes a Package in the state that was observed. Its objects are deleted or
// kept by its deletionPolicy.
func (s *reconciliation) delete(ctx context.Context, namespace string) (*corev1alpha1.Package, error) {
	pkg := s.packages[namespace]
	err := s.Client.Delete(ctx, pkg, client.Preconditions{UID: ptr.To(pkg.UID), ResourceVersion: ptr.To(pkg.ResourceVersion)})
	if err != nil && !apply.IsAbsent(err) {
		return nil, fmt.Errorf("delete Package %s/%s: %w", namespace, s.owner.Name, err)
	}
	return nil, nil
}

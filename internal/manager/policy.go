package manager

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"lockstep.run/lockstep/internal/kube/metrics"
)

// deletionPolicy is the name of the ValidatingAdmissionPolicy of config and of
// its binding; a test compares it with config.
const deletionPolicy = "lockstep-foreground-deletion"

// policyPresent is 1 if the policy and its binding exist, for an alert.
var policyPresent = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: metrics.Policy.Name, Help: metrics.Policy.Help,
})

// checkPolicy logs at the start if deletion in the foreground is not refused, because the garbage
// collector can then delete objects in any order.
func checkPolicy(ctx context.Context, reader client.Reader, log logr.Logger) {
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		err := reader.Get(ctx, types.NamespacedName{Name: deletionPolicy}, found)
		if err == nil {
			continue
		}
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("there is no %s %s", kind, deletionPolicy)
		}
		policyPresent.Set(0)
		log.Info("deletion in the foreground is not refused: the order of teardown is not guaranteed then; install config/admission", "reason", err.Error())
		return
	}
	policyPresent.Set(1)
}

// addPolicyCheck adds the check and its metric.
func addPolicyCheck(mgr ctrl.Manager) error {
	if err := ctrlmetrics.Registry.Register(policyPresent); err != nil {
		return fmt.Errorf("register the metric of the admission policy: %w", err)
	}
	return mgr.Add(leaderFunc(func(ctx context.Context) error {
		checkPolicy(ctx, mgr.GetAPIReader(), mgr.GetLogger())
		return nil
	}))
}

// leaderFunc is a Runnable of the leader.
type leaderFunc func(context.Context) error

// Start calls the function.
func (f leaderFunc) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection reports whether only the leader runs it.
func (leaderFunc) NeedLeaderElection() bool { return true }

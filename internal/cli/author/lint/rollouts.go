package lint

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// failedRollout returns the states of a workload during the rollout of a template
// whose pods never become ready, such as with an image that cannot start. There are
// none if no pods are replaced: without replicas, with the strategy OnDelete, or
// with a partition above all of them.
func failedRollout(o *object) []map[string]any {
	spec := mapping(o.Object, "spec")
	switch o.kind {
	case deploymentKind:
		return failedDeployment(o, spec)
	case statefulSetKind:
		return failedStatefulSet(o, spec)
	case daemonSetKind:
		return failedDaemonSet(o, spec)
	}
	return nil
}

// observed returns an object with a status and with the defaults of the API server.
func observed(o *object, defaults, status map[string]any) map[string]any {
	live := runtime.DeepCopyJSON(o.Object)
	for path, value := range defaults {
		keys := strings.Split(path, ".")
		if at(live, keys...) == nil {
			_ = unstructured.SetNestedField(live, value, keys...) // fails for invalid objects
		}
	}
	_ = unstructured.SetNestedField(live, int64(2), "metadata", "generation")
	status["observedGeneration"] = int64(2)
	maps.DeleteFunc(status, func(_ string, value any) bool { return value == nil })
	live["status"] = status
	return live
}

// counter is a number of a status that is omitted if it is 0.
func counter(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// scaled resolves a number or a percentage of a total.
func scaled(value any, fallback string, total int64, roundUp bool) int64 {
	parsed := intstr.Parse(fallback)
	switch value := value.(type) {
	case int64:
		parsed = intstr.FromInt32(int32(min(value, math.MaxInt32)))
	case string:
		parsed = intstr.Parse(value)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&parsed, int(total), roundUp)
	if err != nil {
		return 0
	}
	return int64(n)
}

func number(obj map[string]any, fallback int64, path ...string) int64 {
	if n, ok := at(obj, path...).(int64); ok {
		return n
	}
	return fallback
}

func failedDeployment(o *object, spec map[string]any) (states []map[string]any) {
	n := number(spec, 1, "replicas")
	if n == 0 {
		return nil
	}
	surge := scaled(at(spec, "strategy", "rollingUpdate", "maxSurge"), "25%", n, true)
	unavailable := min(n, scaled(at(spec, "strategy", "rollingUpdate", "maxUnavailable"), "25%", n, false))
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // as the controller does
	}
	stuck := []struct{ old, updated int64 }{{n, 0}, {n, min(surge, n)}, {n - unavailable, min(surge, n)}, {n - unavailable, min(n, surge+unavailable)}}
	strategy := "RollingUpdate"
	if text(spec, "strategy", "type") == "Recreate" {
		strategy, unavailable = "Recreate", 0
		stuck = []struct{ old, updated int64 }{{n, 0}, {0, 0}, {0, n}}
	}
	for _, s := range stuck {
		for _, progressing := range []string{"True", "False"} {
			available := "True"
			if s.old < n-unavailable {
				available = "False"
			}
			states = append(states, observed(o, map[string]any{"spec.replicas": n, "spec.strategy.type": strategy}, map[string]any{
				"replicas": counter(s.old + s.updated), "updatedReplicas": counter(s.updated), "unavailableReplicas": counter(s.updated),
				"readyReplicas": counter(s.old), "availableReplicas": counter(s.old),
				"conditions": []any{
					map[string]any{"type": "Available", "status": available},
					map[string]any{"type": "Progressing", "status": progressing},
				},
			}))
		}
	}
	return states
}

func failedStatefulSet(o *object, spec map[string]any) (states []map[string]any) {
	n, partition := number(spec, 1, "replicas"), number(spec, 0, "updateStrategy", "rollingUpdate", "partition")
	if n <= partition || text(spec, "updateStrategy", "type") == "OnDelete" {
		return nil
	}
	down := min(n-partition, max(1, scaled(at(spec, "updateStrategy", "rollingUpdate", "maxUnavailable"), "1", n, true)))
	for _, s := range []struct{ pods, ready, updated int64 }{{n, n, 0}, {n - down, n - down, 0}, {n, n - down, down}} {
		states = append(states, observed(o, map[string]any{
			"spec.replicas": n, "spec.updateStrategy.type": "RollingUpdate", "spec.updateStrategy.rollingUpdate.partition": partition,
		}, map[string]any{
			"replicas": s.pods, "readyReplicas": counter(s.ready), "availableReplicas": s.ready, "currentReplicas": counter(s.pods - s.updated),
			"updatedReplicas": counter(s.updated), "currentRevision": o.GetName() + "-1", "updateRevision": o.GetName() + "-2",
		}))
	}
	return states
}

// failedDaemonSet assumes clusters of one node and of three. With a surge, the
// controller counts the older of two pods on a node.
func failedDaemonSet(o *object, spec map[string]any) (states []map[string]any) {
	if text(spec, "updateStrategy", "type") == "OnDelete" {
		return nil
	}
	for _, nodes := range []int64{1, 3} {
		stuck := []struct{ pods, ready, updated int64 }{{nodes, nodes, 0}}
		if scaled(at(spec, "updateStrategy", "rollingUpdate", "maxSurge"), "0", nodes, true) == 0 {
			down := min(nodes, max(1, scaled(at(spec, "updateStrategy", "rollingUpdate", "maxUnavailable"), "1", nodes, true)))
			stuck = append(stuck, struct{ pods, ready, updated int64 }{nodes - down, nodes - down, 0}, struct{ pods, ready, updated int64 }{nodes, nodes - down, down})
		}
		for _, s := range stuck {
			states = append(states, observed(o, map[string]any{"spec.updateStrategy.type": "RollingUpdate"}, map[string]any{
				"desiredNumberScheduled": nodes, "currentNumberScheduled": s.pods, "numberMisscheduled": int64(0), "numberReady": s.ready,
				"numberAvailable": counter(s.ready), "numberUnavailable": counter(nodes - s.ready), "updatedNumberScheduled": counter(s.updated),
			}))
		}
	}
	return states
}

// brief lists the counters of a status.
func brief(status map[string]any) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(status)) {
		if n, ok := status[key].(int64); ok && key != "observedGeneration" && n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", key, n))
		}
	}
	return strings.Join(parts, ", ")
}

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli/author/lint"
	"lockstep.run/lockstep/test/require"
)

// pairs are objects before and after an upgrade: apiVersion and kind, and their other fields.
var pairs = []struct {
	name, head, before, after string
	refused                   bool
}{
	{"selector", "apps/v1 Deployment", workloadSpec("replicas: 0", "a"), workloadSpec("replicas: 0", "b"), true},
	{"default-policy", "apps/v1 StatefulSet", workloadSpec("replicas: 0, serviceName: a", "a"), workloadSpec("replicas: 0, serviceName: a, podManagementPolicy: OrderedReady", "a"), false},
	{"service-name", "apps/v1 StatefulSet", workloadSpec("replicas: 0, serviceName: a", "a"), workloadSpec("replicas: 0, serviceName: b", "a"), true},
	{"default-type", "v1 Secret", "data: {}", "type: Opaque", false},
	{"type", "v1 Secret", "data: {}", "type: example.com/other", true},
	{"frozen", "v1 ConfigMap", "immutable: true, data: {a: b}", "immutable: true, data: {a: c}", true},
	{"recreate-before", "v1 ConfigMap", "RECREATE, immutable: true, data: {a: b}", "immutable: true, data: {a: c}", false},
	{"recreate-after", "v1 ConfigMap", "immutable: true, data: {a: b}", "RECREATE, immutable: true, data: {a: c}", false},
	{"recreate-kept", "v1 ConfigMap", "immutable: true, data: {a: b}", "RECREATE KEEP, immutable: true, data: {a: c}", true},
	{"default-mode", "v1 PersistentVolumeClaim", claimSpec("ReadWriteOnce"), claimSpec("ReadWriteOnce], volumeMode: Filesystem, accessModes: [ReadWriteOnce"), false},
	{"access", "v1 PersistentVolumeClaim", claimSpec("ReadWriteOnce"), claimSpec("ReadWriteMany"), true},
	{"default-group", "rbac.authorization.k8s.io/v1 RoleBinding", "roleRef: {kind: Role, name: a}", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}", false},
	{"role", "rbac.authorization.k8s.io/v1 RoleBinding", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: b}", true},
	{"default-preemption", "scheduling.k8s.io/v1 PriorityClass", "value: 1", "value: 1, preemptionPolicy: PreemptLowerPriority", false},
	{"value", "scheduling.k8s.io/v1 PriorityClass", "value: 1", "value: 2", true},
	{"default-reclaim", "storage.k8s.io/v1 StorageClass", "provisioner: example.com/a", "provisioner: example.com/a, reclaimPolicy: Delete", false},
	{"parameters", "storage.k8s.io/v1 StorageClass", "provisioner: example.com/a", "provisioner: example.com/a, parameters: {a: b}", true},
	{"group-policy", "storage.k8s.io/v1 CSIDriver", "spec: {fsGroupPolicy: File}", "spec: {fsGroupPolicy: None}", false},
	{"attach", "storage.k8s.io/v1 CSIDriver", "spec: {fsGroupPolicy: File}", "spec: {fsGroupPolicy: File, attachRequired: false}", true},
	{"ingress", "networking.k8s.io/v1 IngressClass", "spec: {controller: example.com/a}", "spec: {controller: example.com/b}", true},
	{"handler", "node.k8s.io/v1 RuntimeClass", "handler: a", "handler: b", true},
	{"scopes", "v1 ResourceQuota", "spec: {hard: {pods: 1000}, scopes: [BestEffort]}", "spec: {hard: {pods: 1000}, scopes: [NotBestEffort]}", true},
	{"family", "discovery.k8s.io/v1 EndpointSlice", "addressType: IPv4, endpoints: []", "addressType: FQDN, endpoints: []", true},
	{"headless", "v1 Service", "spec: {ports: [{port: 80}]}", "spec: {ports: [{port: 80}], clusterIP: None}", true},
	{"completions", "batch/v1 Job", jobSpec(""), jobSpec(", completions: 2"), true},
	{"elastic", "batch/v1 Job", jobSpec(", completionMode: Indexed, completions: 1, parallelism: 1"), jobSpec(", completionMode: Indexed, completions: 2, parallelism: 2"), false},
	{"default-completions", "batch/v1 Job", jobSpec(""), jobSpec(", completions: 1, completionMode: NonIndexed"), false},
}

func workloadSpec(spec, app string) string {
	return fmt.Sprintf("spec: {%s, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: a, image: 'example.com/a:v1'}]}}}", spec, app)
}

func claimSpec(mode string) string {
	return strings.Replace("spec: {accessModes: ["+mode+"], resources: {requests: {storage: 1Gi}}}", "accessModes: [ReadWriteOnce], volumeMode", "volumeMode", 1)
}

func jobSpec(more string) string {
	return "spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'example.com/a:v1'}]}}" + more + "}"
}

// Lint, without a cluster, and plan refuse the same changes.
func TestLintAgreesWithPlan(t *testing.T) {
	t.Parallel()
	env := shared(t)
	env.Namespace(t, "agree")
	before, after := harness.Files{}, harness.Files{}
	for _, files := range []harness.Files{before, after} {
		files["manifest.yaml"] = harness.Manifest("agree", []string{"deploy"}, "")
	}
	var want []string
	for _, p := range pairs {
		before[p.name+".yaml"], after[p.name+".yaml"] = pairObject(p.name, p.head, p.before), pairObject(p.name, p.head, p.after)
		if p.refused {
			want = append(want, "agree-"+p.name)
		}
	}
	slices.Sort(want)
	env.Create(t, harness.ClusterPackage("agree", env.Push(t, "agree:v1", before)))
	env.WaitAvailable(t, "", "agree")

	var planned, linted []string
	for _, r := range planOf(t, env, env.Push(t, "agree:v2", after), "agree", "--cluster").Refusals {
		planned = append(planned, r.Name)
	}
	findings, err := lint.Run(t.Context(), after.Bytes(), lint.Options{From: before.Bytes()})
	require.NoError(t, err)
	for _, f := range findings {
		if f.Rule == "immutable-field" {
			linted = append(linted, f.Object[strings.LastIndexAny(f.Object, " /")+1:])
		}
	}
	slices.Sort(planned)
	slices.Sort(linted)
	if !slices.Equal(planned, want) || !slices.Equal(linted, want) {
		t.Errorf("plan refuses\n%q\nlint warns of\n%q\nwant\n%q", planned, linted, want)
	}
}

// pairObject writes an object. RECREATE and KEEP in fields become annotations.
func pairObject(name, head, fields string) string {
	apiVersion, kind, _ := strings.Cut(head, " ")
	annotations := "package-operator.run/phase: deploy"
	for word, annotation := range map[string]string{"RECREATE": "package-operator.run/on-immutable: Recreate", "KEEP": "package-operator.run/deletion-policy: Keep"} {
		if strings.Contains(fields, word) {
			annotations += ", " + annotation
		}
	}
	fields = strings.TrimLeft(strings.NewReplacer("RECREATE", "", "KEEP", "").Replace(fields), " ,")
	namespace := ", namespace: agree"
	if slices.Contains([]string{"PriorityClass", "StorageClass", "CSIDriver", "IngressClass", "RuntimeClass"}, kind) {
		namespace = ""
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: agree-%s%s, annotations: {%s}}, %s}\n", apiVersion, kind, name, namespace, annotations, fields)
}

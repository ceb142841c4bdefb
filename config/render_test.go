package config_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

func TestConfigRenders(t *testing.T) {
	t.Parallel()
	objects := render(t, ".")
	var rendered []string
	for _, object := range objects {
		rendered = append(rendered, nameOf(object))
	}
	embedded, err := config.Objects(config.FolderNamespace, config.FolderCRDs, config.FolderRBAC,
		config.FolderAdmission, config.FolderFlowControl, config.FolderManager)
	require.NoError(t, err)
	var want []string
	for _, object := range embedded {
		want = append(want, object.GetKind()+" "+object.GetName())
	}
	// A file that no kustomization lists, or that is not embedded, shows here.
	slices.Sort(rendered)
	slices.Sort(want)
	if !slices.Equal(rendered, want) {
		t.Errorf("rendered:\n%s\nembedded:\n%s", strings.Join(rendered, "\n"), strings.Join(want, "\n"))
	}
}

func TestManagerIsRestricted(t *testing.T) {
	t.Parallel()
	deployment := find[*appsv1.Deployment](t, render(t, "."), config.ServiceAccount)
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	for what, ok := range map[string]bool{
		"runs as non-root":            *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 65532,
		"seccomp of the runtime":      pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"root file system read-only":  *container.SecurityContext.ReadOnlyRootFilesystem,
		"no privilege escalation":     !*container.SecurityContext.AllowPrivilegeEscalation,
		"no capabilities":             slices.Equal(container.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
		"its own service account":     pod.ServiceAccountName == config.ServiceAccount,
		"its own priority class":      pod.PriorityClassName == "lockstep-manager",
		"memory is limited":           !container.Resources.Limits.Memory().IsZero(),
		"memory is requested":         !container.Resources.Requests.Memory().IsZero(),
		"CPU is requested":            !container.Resources.Requests.Cpu().IsZero(),
		"liveness probe":              container.LivenessProbe.HTTPGet.Path == "/healthz",
		"readiness probe":             container.ReadinessProbe.HTTPGet.Path == "/readyz",
		"two replicas":                *deployment.Spec.Replicas == 2,
		"leader election":             slices.Contains(container.Args, "--leader-elect"),
		"the image is set":            container.Image == "lockstep.run/lockstep-manager:dev",
		"in the namespace of Leases":  deployment.Namespace == corev1alpha1.DefaultNamespace,
		"metrics take a token":        !slices.Contains(container.Args, "--metrics-secure=false"),
		"the cache can be written to": container.VolumeMounts[0].MountPath == "/var/cache/lockstep",
	} {
		if !ok {
			t.Errorf("the manager lacks: %s", what)
		}
	}
}

func TestSelectorsFindTheManager(t *testing.T) {
	t.Parallel()
	objects := render(t, ".")
	deployment := find[*appsv1.Deployment](t, objects, config.ServiceAccount)
	budget := find[*policyv1.PodDisruptionBudget](t, objects, config.ServiceAccount)
	metrics := find[*corev1.Service](t, objects, "lockstep-manager-metrics").Spec
	if len(metrics.Ports) != 1 || metrics.Ports[0].TargetPort.StrVal != "metrics" {
		t.Errorf("the service of the metrics has %+v", metrics.Ports)
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"service of metrics": {MatchLabels: metrics.Selector},
		"deployment":         deployment.Spec.Selector,
		"disruption budget":  budget.Spec.Selector,
		"first spread":       deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector,
		"second spread":      deployment.Spec.Template.Spec.TopologySpreadConstraints[1].LabelSelector,
	} {
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		require.NoError(t, err)
		if parsed.Empty() || !parsed.Matches(labels.Set(deployment.Spec.Template.Labels)) {
			t.Errorf("the selector of the %s does not match the manager's pods", name)
		}
	}
}

// Probes come from the node, which Kubernetes always admits: no pod needs the port of probes, and
// few need metrics.
func TestNetworkPolicyAdmitsNoHealth(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]string{config.ServiceAccount: ".", "lockstep-agent": "agent"} {
		objects := render(t, folder)
		policy, pod := find[*networkingv1.NetworkPolicy](t, objects, name), find[*appsv1.Deployment](t, objects, name).Spec.Template
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		require.NoError(t, err)
		if policy.Namespace != corev1alpha1.DefaultNamespace || !selector.Matches(labels.Set(pod.Labels)) || !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress"}) {
			t.Errorf("%s: the policy is not about ingress to its pods", name)
		}
		for _, rule := range policy.Spec.Ingress {
			if len(rule.Ports) == 0 {
				t.Errorf("%s: all ports are open", name)
			}
			for _, port := range rule.Ports {
				if port.Port.StrVal != "metrics" || port.EndPort != nil {
					t.Errorf("%s: port %s is open", name, port.Port)
				}
			}
			if len(rule.From) != 1 || rule.From[0].PodSelector != nil || rule.From[0].NamespaceSelector.MatchLabels["metrics"] != "enabled" {
				t.Errorf("%s: it admits %+v", name, rule.From)
			}
		}
	}
}

// lineWith returns the first line of a script that contains a text.
func lineWith(script, text string) string {
	for line := range strings.Lines(script) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestArgoCDKnowsTheHealthOfEveryKind(t *testing.T) {
	t.Parallel()
	configMap := find[*corev1.ConfigMap](t, render(t, "argocd"), "argocd-cm")
	for name, kind := range kinds {
		key := "resource.customizations.health.package-operator.run_" + name
		script, ok := configMap.Data[key]
		if ok == kind.noStatus {
			t.Errorf("%s: %t, want %t", key, ok, !kind.noStatus)
		}
		if ok && !strings.Contains(script, "return health(") {
			t.Errorf("%s is not a health check", key)
		}
		if waits := lineWith(script, `is("AwaitingActivation", "True")`); ok && !strings.HasSuffix(waits, "and not broken then") {
			t.Errorf("%s: the waiting revision hides that the one in charge is not available: %s", key, waits)
		}
		delete(configMap.Data, key)
	}
	require.Equal(t, 0, len(configMap.Data), fmt.Sprintf("keys of no kind: %v", configMap.Data))
	if configMap.Namespace != "argocd" || configMap.Labels["app.kubernetes.io/part-of"] != "argocd" {
		t.Error("Argo CD does not read this ConfigMap")
	}
}

// render builds a kustomization and decodes each object strictly, so that a
// field that its kind does not have is an error.
// renders has functions that render a folder once, because it takes half a second. Tests only
// read the objects.
var renders sync.Map

func once(folder string, render func() []runtime.Object) []runtime.Object {
	f, _ := renders.LoadOrStore(folder, sync.OnceValue(render))
	return f.(func() []runtime.Object)()
}

func render(t *testing.T, folder string) []runtime.Object {
	t.Helper()
	return once(folder, func() []runtime.Object { return renderFrom(t, filesys.MakeFsOnDisk(), folder) })
}

func renderFrom(t *testing.T, fs filesys.FileSystem, folder string) []runtime.Object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, folder)
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	var objects []runtime.Object
	for _, resource := range resources.Resources() {
		document, err := resource.AsYAML()
		require.NoError(t, err)
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", resource.CurId(), err)
			continue
		}
		objects = append(objects, object)
	}
	return objects
}

func nameOf(object runtime.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + " " + object.(metav1.Object).GetName()
}

func find[T metav1.Object](t *testing.T, objects []runtime.Object, name string) T {
	t.Helper()
	for _, object := range objects {
		if found, ok := object.(T); ok && found.GetName() == name {
			return found
		}
	}
	var zero T
	t.Fatalf("no %T called %s", zero, name)
	return zero
}

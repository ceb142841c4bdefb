package dependencies_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// shown returns a package whose ConfigMap contains the environment that it was rendered for.
func shown(constraints string) harness.Files {
	return harness.Files{
		"manifest.yaml": harness.Manifest("shown", []string{"deploy"}, constraints),
		"shown.yaml.gotmpl": `apiVersion: v1
kind: ConfigMap
metadata:
  name: shown
  annotations: {package-operator.run/phase: deploy}
data:
  environment: '{{ toJson .environment }}'
`,
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// create creates an object, also one whose API is just coming, with its status.
func create(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, text)
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	harness.Eventually(t, patience, "the API of "+u.GetKind(), func(ctx context.Context) error { return env.Client.Create(ctx, u) })
	if status != nil {
		u.Object["status"] = status
		require.NoError(t, env.Client.Status().Update(t.Context(), u))
	}
	return u
}

// setStatus replaces the status of an object.
func setStatus(t *testing.T, u *unstructured.Unstructured, text string) {
	t.Helper()
	require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	u.Object["status"] = object(t, text).Object
	require.NoError(t, env.Client.Status().Update(t.Context(), u))
}

// shows waits until the package in a namespace was rendered with all of the texts. A text that
// starts with an exclamation mark must be absent.
func shows(t *testing.T, ns string, texts ...string) {
	t.Helper()
	harness.Eventually(t, patience, fmt.Sprintf("namespace %s to show %v", ns, texts), func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		if err := env.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "shown"}, cm); err != nil {
			return err
		}
		for _, text := range texts {
			unwanted, not := strings.CutPrefix(text, "!")
			if not == strings.Contains(cm.Data["environment"], unwanted) {
				return fmt.Errorf("it shows %s", cm.Data["environment"])
			}
		}
		return nil
	})
}

func says(t *testing.T, ns, name, typ, reason, text string) {
	t.Helper()
	harness.Eventually(t, patience, name+" to say "+reason, func(context.Context) error {
		pkg := env.Package(t, ns, name)
		c := meta.FindStatusCondition(*pkg.StatusConditions(), typ)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%+v", *pkg.StatusConditions())
		}
		return nil
	})
}

// A cluster becomes OpenShift, gets a proxy, is updated, and stops being it: each time packages are
// rendered again and constraints are met, and at rest no request is sent.
func TestOpenShift(t *testing.T) {
	env.Namespace(t, "openshift-config")
	for _, ns := range []string{"shown", "only-openshift"} {
		env.Namespace(t, ns)
	}
	onlyOpenShift := "  constraints:\n  - platform: [OpenShift]\n  - platformVersion: {name: OpenShift, range: '>=4.18'}\n"
	env.Create(t, harness.Package("shown", "shown", env.Push(t, "shown:v1", shown(""))))
	env.Create(t, harness.Package("only-openshift", "shown", env.Push(t, "openshift:v1", shown(onlyOpenShift))))
	env.WaitAvailable(t, "shown", "shown")
	shows(t, "shown", `"version":"v1.`, "!openShift", "!proxy", "!hyperShift")
	says(t, "only-openshift", "shown", corev1alpha1.ConditionInvalid, corev1alpha1.ReasonConstraintsFailed, "OpenShift")

	crds := []*unstructured.Unstructured{
		create(t, harness.Definition("config.openshift.io", "ClusterVersion", "clusterversions", "v1", "Cluster")),
		create(t, harness.Definition("config.openshift.io", "Proxy", "proxies", "v1", "Cluster")),
	}
	version := create(t, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
status: {desired: {version: 4.17.1}, history: [{state: Completed, version: 4.17.1}]}`)
	shows(t, "shown", `"openShift":{"version":"4.17.1"}`)
	says(t, "only-openshift", "shown", corev1alpha1.ConditionInvalid, corev1alpha1.ReasonConstraintsFailed, "4.17.1")

	setStatus(t, version, "{desired: {version: 4.18.3}, history: [{state: Completed, version: 4.18.3}, {state: Completed, version: 4.17.1}]}")
	shows(t, "shown", `"version":"4.18.3"`)
	env.WaitAvailable(t, "only-openshift", "shown")
	shows(t, "only-openshift", `"version":"4.18.3"`)

	create(t, "{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, status: {httpProxy: 'http://proxy.example'}}")
	create(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: osd-cluster-metadata, namespace: openshift-config}, data: {region: north}}")
	shows(t, "shown", `"proxy":{"httpProxy":"http://proxy.example"}`, `"managed":{"data":{"region":"north"}}`)

	restsAfterAnUpdateThatSaysNothingNew(t, version)

	for _, c := range crds {
		require.NoError(t, env.Client.Delete(t.Context(), c))
	}
	shows(t, "shown", "!openShift", "!proxy")
}

// restsAfterAnUpdateThatSaysNothingNew shows that a change that no package sees
// costs no request.
func restsAfterAnUpdateThatSaysNothingNew(t *testing.T, version *unstructured.Unstructured) {
	t.Helper()
	env.WaitAvailable(t, "shown", "shown")
	env.WaitAvailable(t, "only-openshift", "shown")
	env.Settle(t, "shown", "only-openshift")
	from := env.Journal(t)
	setStatus(t, version, "{desired: {version: 4.18.4}, conditions: [{type: Progressing}], history: [{state: Partial, version: 4.18.4}, {state: Completed, version: 4.18.3}]}")
	from.Silent(t, "shown", "only-openshift")
}

// A package in the namespace of a hosted cluster's control plane sees that cluster,
// and packages elsewhere do not.
func TestHostedCluster(t *testing.T) {
	for _, ns := range []string{"clusters", "clusters-my-cluster", "elsewhere"} {
		env.Namespace(t, ns)
	}
	image := env.Push(t, "hosted:v1", shown(""))
	definition := create(t, harness.Definition("hypershift.openshift.io", "HostedCluster", "hostedclusters", "v1beta1", "Namespaced"))
	planes := create(t, harness.Definition("hypershift.openshift.io", "HostedControlPlane", "hostedcontrolplanes", "v1beta1", "Namespaced"))
	env.Create(t, harness.Package("clusters-my-cluster", "shown", image))
	env.Create(t, harness.Package("elsewhere", "shown", image))
	shows(t, "elsewhere", `"hyperShift":{}`)
	hosted := create(t, `
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: my.cluster, namespace: clusters, labels: {team: blue}}
spec: {nodeSelector: {role: infra}}`)
	create(t, `
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedControlPlane
metadata: {name: my.cluster, namespace: clusters-my-cluster, annotations: {hypershift.openshift.io/cluster: clusters/my.cluster}}`)
	shows(t, "clusters-my-cluster", `"hostedClusterNamespace":"clusters-my-cluster"`, `"name":"my.cluster"`, `"team":"blue"`, `"nodeSelector":{"role":"infra"}`)
	shows(t, "elsewhere", `"hyperShift":{}`)
	require.NoError(t, env.Client.Delete(t.Context(), hosted))
	shows(t, "clusters-my-cluster", `"hyperShift":{}`)
	require.NoError(t, env.Client.Delete(t.Context(), definition), env.Client.Delete(t.Context(), planes))
	shows(t, "elsewhere", "!hyperShift")
	env.WaitGone(t, patience, definition)
	env.WaitGone(t, patience, planes)
}

package kickstart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/kickstart"
	"lockstep.run/lockstep/internal/cli/author/lint"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
)

func project(t testing.TB, names ...string) string {
	t.Helper()
	var all []string
	for _, name := range names {
		all = append(all, read(t, "testdata/projects/"+name+".yaml"))
	}
	return strings.Join(all, "---\n")
}

// No phase of a published project waits for objects of a later phase, or for something that only
// some clusters have.
func TestProjects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files []string
		// phases of the objects that matter.
		phases map[string]string
		probed []string
		notes  []string
	}{
		"ingress": {
			files: []string{"ingress"},
			phases: map[string]string{
				"Job ingress-nginx-admission-create": "deploy", "Deployment ingress-nginx-controller": "deploy",
				"ValidatingWebhookConfiguration ingress-nginx-admission": "admission", "Job ingress-nginx-admission-patch": "admission-patch",
				"IngressClass nginx": "publish",
			},
			probed: []string{"Deployment.apps", "Job.batch", "Namespace"},
			notes:  []string{"Job ingress-nginx/ingress-nginx-admission-patch has the right to patch ValidatingWebhookConfiguration ingress-nginx-admission: it is in the later phase admission-patch"},
		},
		"loadbalancer": {
			files: []string{"loadbalancer"},
			phases: map[string]string{
				"CustomResourceDefinition ipaddresspools.metallb.example.com": "crds", "Deployment controller": "deploy", "DaemonSet speaker": "deploy",
				"ValidatingWebhookConfiguration metallb-webhook-configuration": "deploy",
			},
			probed: []string{"CustomResourceDefinition.apiextensions.k8s.io", "DaemonSet.apps", "Deployment.apps", "Namespace"},
			notes:  []string{together("Deployment metallb-system/controller", "ValidatingWebhookConfiguration metallb-webhook-configuration")},
		},
		"definitions": {
			files: []string{"definitions"},
			phases: map[string]string{
				"CustomResourceDefinition gateways.routes.example.com": "crds", "ValidatingAdmissionPolicy safe-upgrades.routes.example.com": "admission",
			},
			probed: []string{"CustomResourceDefinition.apiextensions.k8s.io"},
		},
		"applications": {
			files: []string{"applications"},
			phases: map[string]string{
				"Namespace argocd": "namespaces", "NetworkPolicy argocd-redis": "policies", "Deployment argocd-server": "deploy", "StatefulSet argocd-application-controller": "deploy",
			},
			probed: []string{"CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Namespace", "StatefulSet.apps"},
			notes: []string{
				"objects without a namespace (12) were put into argocd; choose another one with --namespace", "the Namespace argocd was added, because objects are in it; it stays when the package is deleted",
			},
		},
		"monitoring": {
			files: []string{"monitoring", "monitoring-api"},
			phases: map[string]string{
				"Deployment prometheus-operator": "deploy", "Prometheus k8s": "resources", "PrometheusRule general": "resources",
				"Deployment prometheus-adapter": "dependents", "APIService v1beta1.metrics.example.com": "publish",
			},
			probed: []string{"APIService.apiregistration.k8s.io", "CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Namespace"},
			notes: []string{
				"the namespace kube-system has to exist: none was added, because it belongs to the cluster",
				"Deployment monitoring/prometheus-adapter calls Service monitoring/prometheus-k8s, which gets its pods from resources of the package: it is in the later phase dependents",
				"values of Secrets (1) became configuration below secrets. Everybody who can pull the image can read these defaults: set other values with spec.configFrom, or leave the Secrets out",
				"no probe waits for Prometheus monitoring/k8s, because it is not known whether the condition Available becomes True; if it does, add to spec.availabilityProbes: " +
					"{selector: {kind: {group: monitoring.example.com, kind: Prometheus}}, probes: [{condition: {type: Available, status: \"True\"}}]}",
			},
		},
		"secrets-operator": {
			files: []string{"secrets-operator"},
			phases: map[string]string{
				"Deployment secrets-operator-cert-controller": "deploy", "Deployment secrets-operator-webhook": "deploy", "ValidatingWebhookConfiguration secretstore-validate": "deploy",
			},
			probed: []string{"CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Namespace"},
			notes:  []string{"the Namespace secrets-operator was added, because objects are in it; it stays when the package is deleted", together("Deployment secrets-operator/secrets-operator-cert-controller", "ValidatingWebhookConfiguration secretstore-validate")},
		},
		"serving": {
			files: []string{"serving"},
			phases: map[string]string{
				"ConfigMap config-network": "configuration", "Deployment webhook": "deploy", "ValidatingWebhookConfiguration config.webhook.serving.example.com": "deploy", "Certificate routing-serving-certs": "resources",
			},
			probed: []string{"CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Namespace"},
			notes: []string{
				"the Namespace serving was added, because objects are in it; it stays when the package is deleted",
				together("Deployment serving/webhook", "ValidatingWebhookConfiguration config.webhook.serving.example.com"),
				"ConfigMap serving/config-network is matched by webhooks of ValidatingWebhookConfiguration config.webhook.serving.example.com, which fail until their server is ready: it is in the earlier phase configuration",
				unwaited("Certificate serving/routing-serving-certs", "networking.serving.example.com"),
			},
		},
		"mesh": {
			files:  []string{"mesh"},
			phases: map[string]string{"Deployment meshd": "deploy", "ValidatingWebhookConfiguration mesh-validator": "deploy"},
			probed: []string{"Deployment.apps", "Namespace"},
			notes: []string{"the Namespace mesh was added, because objects are in it; it stays when the package is deleted", together("Deployment mesh/meshd", "ValidatingWebhookConfiguration mesh-validator"),
				"Deployment mesh/meshd can fill in fields of ValidatingWebhookConfiguration mesh-validator: its values are kept (/webhooks/0/clientConfig/caBundle, /webhooks/0/failurePolicy)"},
		},
		"certificates": {
			files: []string{"certificates"},
			phases: map[string]string{
				"Deployment certificates-cainjector": "deploy", "Deployment certificates-webhook": "deploy", "MutatingWebhookConfiguration certificates-webhook": "deploy", "Job certificates-startupapicheck": "post-install",
			},
			probed: []string{"CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Job.batch", "Namespace"},
			notes: []string{
				"the Namespace certificates was added, because objects are in it; it stays when the package is deleted",
				"Job certificates/certificates-startupapicheck is a hook of Helm (post-install): it becomes an ordinary object in phase post-install, which runs during the installation, and again when it changes",
				together("Deployment certificates/certificates-cainjector", "MutatingWebhookConfiguration certificates-webhook"),
			},
		},
		"storage": {
			files:  []string{"storage"},
			phases: map[string]string{"Deployment storage-operator": "deploy", "StorageCluster main": "resources"},
			probed: []string{"CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Namespace"},
			notes:  []string{"the Namespace storage was added, because objects are in it; it stays when the package is deleted", unwaited("StorageCluster storage/main", "storage.example.com")},
		},
		"pipelines": {
			files: []string{"pipelines"},
			phases: map[string]string{
				"ConfigMap feature-flags": "configuration", "Deployment pipelines-webhook": "deploy", "ValidatingWebhookConfiguration config.webhook.pipelines.example.com": "deploy",
			},
			probed: []string{"Deployment.apps", "Namespace"},
			notes: []string{
				"the Namespace pipelines was added, because objects are in it; it stays when the package is deleted",
				together("Deployment pipelines/pipelines-webhook", "ValidatingWebhookConfiguration config.webhook.pipelines.example.com"),
				"ConfigMap pipelines/feature-flags is matched by webhooks of ValidatingWebhookConfiguration config.webhook.pipelines.example.com, which fail until their server is ready: it is in the earlier phase configuration",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := made(t, kickstart.Options{
				Name: name, Version: "1.2.0", KeepCRDs: true, RecreateJobs: true, Parameters: []kickstart.Parameter{kickstart.Images},
			}, project(t, tc.files...))
			pkg := load(t, result)
			got := map[string]string{}
			for key, object := range objectsOf(t, pkg) {
				phase, called, _ := strings.Cut(key, "/")
				if tc.phases[called] != "" {
					got[called] = phase
				}
				checkAnnotations(t, called, object)
			}
			require.Equal(t, tc.phases, got)
			var probed []string
			for _, p := range pkg.Manifest.Spec.AvailabilityProbes {
				kind := p.Selector.Kind.Kind
				if p.Selector.Kind.Group != "" {
					kind += "." + p.Selector.Kind.Group
				}
				probed = append(probed, kind)
			}
			slices.Sort(probed)
			require.Equal(t, tc.probed, probed)
			require.Equal(t, tc.notes, result.Notes)
			require.Equal(t, "1.2.0", pkg.Manifest.Spec.Version, "version")
			checkLint(t, result)
		})
	}
}

// together is the note about a webhook configuration that moves to the workload that can complete
// it.
func together(workload, config string) string {
	return workload + " has the right to write " + config + ": " + config + " is in phase deploy, so that neither waits for a later phase"
}

// unwaited is the note about a custom resource without a probe.
func unwaited(object, group string) string {
	kind, _, _ := strings.Cut(object, " ")
	return "no probe waits for " + object + ", because it is not known whether the condition Ready becomes True; if it does, add to spec.availabilityProbes: " +
		"{selector: {kind: {group: " + group + ", kind: " + kind + `}}, probes: [{condition: {type: Ready, status: "True"}}]}`
}

func checkAnnotations(t *testing.T, called string, object map[string]any) {
	t.Helper()
	annotations, _ := dig(object, "metadata", "annotations").(map[string]any)
	if keep := annotations[corev1alpha1.DeletionPolicyAnnotation] != nil; keep && !strings.HasPrefix(called, "Namespace ") != strings.HasPrefix(called, "CustomResourceDefinition ") {
		t.Errorf("%s: deletion policy %v", called, annotations[corev1alpha1.DeletionPolicyAnnotation])
	}
	if recreate := annotations[corev1alpha1.OnImmutableAnnotation] != nil; recreate != strings.HasPrefix(called, "Job ") {
		t.Errorf("%s: on immutable %v", called, annotations[corev1alpha1.OnImmutableAnnotation])
	}
}

// checkLint expects no findings except containers without probes.
func checkLint(t *testing.T, result *kickstart.Result) {
	t.Helper()
	found, err := lint.Run(t.Context(), locked(result), lint.Options{Disable: []string{"ready-at-once"}})
	if err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Command lines distinguish the Jobs of one account. A Job that already follows its targets stays
// in its phase.
func TestPatchJobs(t *testing.T) {
	t.Parallel()
	const rights = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: hook}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: patch}
rules: [{apiGroups: [RULEGROUP], resources: [RULE], verbs: [get, patch]RESOURCENAMES}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: patch}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: patch}
subjects: [{kind: ServiceAccount, name: runner, namespace: shop}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: shopHOOK}
spec: {template: {spec: {serviceAccountName: runner, restartPolicy: Never, containers: [{name: a, image: "a:1", command: [run]}]}}}
`
	const group = "admissionregistration.k8s.io"
	for name, tc := range map[string]struct{ group, rule, names, hook, want string }{
		"all of a kind":      {group, "mutatingwebhookconfigurations", "", "", "admission-patch"},
		"by its name":        {group, "mutatingwebhookconfigurations", ", resourceNames: [hook]", "", "admission-patch"},
		"another one":        {group, "mutatingwebhookconfigurations", ", resourceNames: [other]", "", "deploy"},
		"another kind":       {group, "validatingwebhookconfigurations", "", "", "deploy"},
		"another group":      {"example.com", "mutatingwebhookconfigurations", "", "", "deploy"},
		"everything":         {"'*'", "'*'", "", "", "deploy"},
		"definitions":        {"apiextensions.k8s.io", "customresourcedefinitions", "", "", "deploy"},
		"hook of Helm":       {group, "mutatingwebhookconfigurations", "", ", annotations: {helm.sh/hook: post-install}", "admission-patch"},
		"hook of Helm first": {group, "mutatingwebhookconfigurations", "", ", annotations: {helm.sh/hook: pre-install}", "pre-install"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer("RULEGROUP", tc.group, "RULE", tc.rule, "RESOURCENAMES", tc.names, "HOOK", tc.hook).Replace(rights)
			objects := objectsOf(t, load(t, made(t, kickstart.Options{}, text)))
			if objects[tc.want+"/Job job"] == nil {
				t.Errorf("got %v", slices.Sorted(maps.Keys(objects)))
			}
		})
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	const here, there, cluster = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: here}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: there}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: []\n"
	const bare, namespace = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n", "apiVersion: v1\nkind: Namespace\nmetadata: {name: here}\n"
	for name, tc := range map[string]struct {
		scope   corev1alpha1.Scope
		texts   []string
		want    string
		objects []string
	}{
		"one namespace":        {corev1alpha1.ScopeNamespaced, []string{here, bare, namespace}, "", []string{"deploy/ConfigMap a", "deploy/ConfigMap b"}},
		"two namespaces":       {corev1alpha1.ScopeNamespaced, []string{here, there}, "the input has objects in here, there", nil},
		"cluster-scoped":       {corev1alpha1.ScopeNamespaced, []string{here, cluster}, "it is cluster-scoped, so a Package in a namespace cannot contain it", nil},
		"another's Namespace":  {corev1alpha1.ScopeNamespaced, []string{there, namespace}, "it is cluster-scoped", nil},
		"Cluster":              {corev1alpha1.ScopeCluster, []string{bare}, "", []string{"deploy/ConfigMap b", "namespaces/Namespace shop"}},
		"next to a shared one": {"", []string{bare, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: kube-system}\n", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: here}\n"}, "", []string{"deploy/ConfigMap b", "deploy/ConfigMap shared", "namespaces/Namespace here", "rbac/ServiceAccount a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := kickstart.Make(inputs(tc.texts...), kickstart.Options{Name: "shop", Scope: tc.scope})
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.objects, slices.Sorted(maps.Keys(objectsOf(t, load(t, result)))))
		})
	}
}

// A kustomization that only lists files of the input is skipped. Others have to be built, whether
// or not they name their kind.
func TestKustomization(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"without kind":  {"resources: [deploy.yaml]\n", ""},
		"with kind":     {"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [./deploy.yaml]\n", ""},
		"other files":   {"resources: [other.yaml]\n", "Build it first: kustomize build"},
		"does more":     {"resources: [deploy.yaml]\nnamePrefix: my-\n", "a kustomization is not an object of a cluster"},
		"names nothing": {"resources: []\n", "a kustomization is not an object of a cluster"},
		"another kind":  {"apiVersion: v1\nresources: [deploy.yaml]\nkind: Thing\n", "the object has no name"},
	} {
		result, err := kickstart.Make([]kickstart.Input{{Name: "in/kustomization.yaml", Data: []byte(tc.text)}, {Name: "in/deploy.yaml", Data: []byte(object)}}, kickstart.Options{Name: "shop", Version: "1.0.0"})
		switch {
		case tc.want != "":
			require.ErrorContains(t, err, tc.want, name)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case result.Objects != 1 || !slices.Equal(result.Notes, []string{"in/kustomization.yaml was left out: it only lists files of the input"}):
			t.Errorf("%s: %d objects, %q", name, result.Objects, result.Notes)
		}
	}
}

// Objects that need one another end up in one phase. Objects without probes precede their
// dependents, and probed objects follow the objects they need.
func TestAlignPhases(t *testing.T) {
	t.Parallel()
	const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: api}
rules: [{apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: api}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: api}
subjects: [{kind: ServiceAccount, name: server, namespace: shop}]
---
apiVersion: v1
kind: Service
metadata: {name: server, namespace: shop}
spec: {selector: {app: server}, ports: [{port: 443}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics.example.com}
spec: {group: metrics.example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: server, namespace: shop}}
---
`
	workload := func(kind, name, annotations, spec string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: shop, annotations: {" + annotations + "}}\n" +
			"spec: {selector: {matchLabels: {app: " + name + "}}, template: {metadata: {labels: {app: " + name + "}}, spec: {" + spec + ", containers: [{name: a, image: 'a:1'}]}}}\n---\n"
	}
	const hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job, namespace: shop, annotations: {helm.sh/hook: pre-install}}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'a:1', envFrom: [{configMapRef: {name: settings}}]}]}}}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"an API that its server completes": {rights + workload("Deployment", "server", "", "serviceAccountName: server"), []string{"deploy/APIService v1.metrics.example.com", "deploy/Deployment server"}},
		"an API of another server":         {rights + workload("Deployment", "server", "", "serviceAccountName: other"), []string{"deploy/Deployment server", "publish/APIService v1.metrics.example.com"}},
		"settings of a hook":               {hook, []string{"pre-install/ConfigMap settings", "pre-install/Job job"}},
	} {
		got := slices.Sorted(maps.Keys(objectsOf(t, load(t, made(t, kickstart.Options{}, tc.text)))))
		for _, want := range tc.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: no %s in %q", name, want, got)
			}
		}
	}
}

// The package has the version of the charts, with and without a v.
func TestChartVersion(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"secrets-operator": "2.8.0", "mesh": "1.29.6", "certificates": "1.20.3"} {
		if pkg := load(t, made(t, kickstart.Options{}, project(t, file))); pkg.Manifest.Spec.Version != want {
			t.Errorf("%s: version %q, want %s", file, pkg.Manifest.Spec.Version, want)
		}
	}
}

// Fields that others fill in are left to them if the input has them. Rights, or an annotation of
// cert-manager, show who fills them in.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	hook := func(annotations, policy, ca string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: hook, annotations: {" + annotations + "}}\n" +
			"webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: " + policy + ", clientConfig: {" + ca + "service: {name: hook, namespace: certificates}}}]\n---\n"
	}
	const inject = "cert-manager.io/inject-ca-from: certificates/a"
	for name, tc := range map[string]struct{ text, want string }{
		"no operation":            {hook("", "Ignore", "caBundle: Cg==, "), ""},
		"cert-manager":            {hook(inject, "Ignore", "caBundle: Cg==, "), "/webhooks/0/clientConfig/caBundle"},
		"cert-manager, absent":    {hook(inject, "Ignore", ""), ""},
		"a workload":              {hook("", "Ignore", "") + project(t, "certificates"), "/webhooks/0/clientConfig/caBundle\n/webhooks/0/failurePolicy"},
		"a workload, fails":       {hook("", "Fail", "caBundle: Cg==, ") + project(t, "certificates"), "/webhooks/0/clientConfig/caBundle"},
		"the author has a choice": {hook("package-operator.run/ignored-fields: /webhooks/0/rules", "Ignore", "") + project(t, "certificates"), "/webhooks/0/rules"},
	} {
		objects := objectsOf(t, load(t, made(t, kickstart.Options{}, tc.text)))
		found := false
		for key, o := range objects {
			if strings.HasSuffix(key, "/MutatingWebhookConfiguration hook") {
				annotations, _ := dig(o, "metadata", "annotations").(map[string]any)
				got, _ := annotations[corev1alpha1.IgnoredFieldsAnnotation].(string)
				found = got == tc.want
			}
		}
		if !found {
			t.Errorf("%s: want %q in %v", name, tc.want, objects)
		}
	}
}

// The labels that kapp finds its objects by are removed, and the labels in selectors stay.
func TestKapp(t *testing.T) {
	t.Parallel()
	result := made(t, kickstart.Options{Name: "web", Version: "1.0.0", NoNamespaces: true}, `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: store
  labels: {app: web, kapp.k14s.io/app: "17", kapp.k14s.io/association: v1.1}
  annotations:
    kapp.k14s.io/identity: v1;store/apps/Deployment/web;apps/v1
    kapp.k14s.io/original: '{}'
    kapp.k14s.io/original-diff-md5: "1"
    kapp.k14s.io/change-group: web
spec:
  selector: {matchLabels: {app: web, kapp.k14s.io/app: "17"}}
  template:
    metadata: {labels: {app: web, kapp.k14s.io/app: "17"}}
    spec: {containers: [{name: web, image: example.com/web:1.0}]}
---
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: store, labels: {kapp.k14s.io/app: "17"}}
spec: {containers: [{name: web, image: example.com/web:1.0}]}
`)
	all := objectsOf(t, load(t, result))
	web, pod := all["deploy/Deployment web"], all["deploy/Pod one"]
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"the label of the Deployment", dig(web, "metadata", "labels", "kapp.k14s.io/app"), nil},
		{"the association", dig(web, "metadata", "labels", "kapp.k14s.io/association"), nil},
		{"the selector", dig(web, "spec", "selector", "matchLabels"), map[string]any{"app": "web", "kapp.k14s.io/app": "17"}},
		{"the labels of its pods", dig(web, "spec", "template", "metadata", "labels"), map[string]any{"app": "web", "kapp.k14s.io/app": "17"}},
		{"the change group", dig(web, "metadata", "annotations", "kapp.k14s.io/change-group"), "web"},
		{"the identity", dig(web, "metadata", "annotations", "kapp.k14s.io/identity"), nil},
		{"the original", dig(web, "metadata", "annotations", "kapp.k14s.io/original-diff-md5"), nil},
		{"the label of the Pod", dig(pod, "metadata", "labels", "kapp.k14s.io/app"), "17"},
		{"the notes", result.Notes, []string{"the namespace store has to exist: none was added, because of --add-namespaces=false"}},
		{"the objects", len(all), 2},
	} {
		require.Equal(t, c.want, c.got, c.what)
	}
}

// A Namespace of the input belongs to the package. An added one outlives the package, with its
// content.
func TestNamespacesThatAreAdded(t *testing.T) {
	t.Parallel()
	const input = `
{apiVersion: v1, kind: Namespace, metadata: {name: own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: added}}
`
	policies := func(opts kickstart.Options) map[string]any {
		found := map[string]any{}
		for key, object := range objectsOf(t, load(t, made(t, opts, input))) {
			if dig(object, "kind") == "Namespace" {
				found[key] = dig(object, "metadata", "annotations", corev1alpha1.DeletionPolicyAnnotation)
			}
		}
		return found
	}
	got := policies(kickstart.Options{Name: "web"})
	if len(got) != 2 || got["namespaces/Namespace own"] != nil || got["namespaces/Namespace added"] != corev1alpha1.DeletionPolicyKeep {
		t.Errorf("the deletion policies are %v", got)
	}
	if got := policies(kickstart.Options{Name: "web", NoNamespaces: true}); len(got) != 1 || got["namespaces/Namespace own"] != nil {
		t.Errorf("without added ones they are %v", got)
	}
}

// Workloads get the recipes, which wait for the end of a rollout.
func TestProbesOfWorkloads(t *testing.T) {
	t.Parallel()
	for kind, apiVersion := range map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "ReplicationController": "v1"} {
		text := "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: web, namespace: shop}\n" +
			"spec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'example.com/web:v1'}]}\n"
		if kind == "ReplicationController" {
			text = "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}}\n"
		}
		want, _ := probes.Recipe(kind)
		found := false
		for _, entry := range load(t, made(t, kickstart.Options{}, text)).Manifest.Spec.AvailabilityProbes {
			if entry.Selector.Kind.Kind == kind {
				found = true
				require.Equal(t, want, entry, kind)
			}
		}
		if !found {
			t.Errorf("%s: no probes", kind)
		}
	}
}

// No probe waits for a workload that the input itself holds back. If other workloads of its kind
// need a probe, a note explains it.
func TestStoppedWorkloads(t *testing.T) {
	t.Parallel()
	const paused, running = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {paused: true}\n", "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\nspec: {replicas: 0}\n"
	for text, want := range map[string]string{
		paused:           "Deployment shop/a never becomes ready with spec.paused, so no probe waits for it",
		paused + running: "Deployment shop/a never becomes ready with spec.paused, and the probe of its kind waits for it",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {suspend: true}\n": "Job shop/a never becomes ready with spec.suspend, so no probe waits for it",
	} {
		result := made(t, kickstart.Options{Namespace: "shop"}, text)
		probed := strings.Contains(string(result.Files["manifest.yaml"]), "group: apps")
		if !strings.Contains(strings.Join(result.Notes, "\n"), want) || probed != (text == paused+running) || len(result.Unprobed) > 0 {
			t.Errorf("%s: notes %q, unprobed %q, probed %t", text, result.Notes, result.Unprobed, probed)
		}
	}
}

const csv = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: cache-operator.v1.2.0
  annotations: {operatorframework.io/suggested-namespace: cache-system}
spec:
  version: 1.2.0
  installModes: [{type: OwnNamespace, supported: true}, {type: AllNamespaces, supported: true}]
  webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: v.example.com}]
  install:
    strategy: deployment
    spec:
      clusterPermissions: [{serviceAccountName: cache-operator, rules: [{apiGroups: [cache.example.com], resources: [caches], verbs: ['*']}]}]
      permissions: [{serviceAccountName: cache-operator, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]}]
      deployments:
      - name: cache-operator
        label: {app: cache-operator}
        spec:
          replicas: 1
          selector: {matchLabels: {app: cache-operator}}
          template:
            metadata: {labels: {app: cache-operator}}
            spec:
              serviceAccountName: cache-operator
              containers: [{name: manager, image: registry.example.com/cache-operator:v1.2.0}]
`

const bundleCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.cache.example.com}
spec:
  group: cache.example.com
  names: {kind: Cache, plural: caches}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func annotations(lines ...string) loader.Files {
	return loader.Files{"annotations.yaml": []byte("annotations:\n  operators.operatorframework.io.bundle.package.v1: cache-operator\n" + strings.Join(lines, ""))}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	manifests := loader.Files{"csv.yaml": []byte(csv), "crd.yaml": []byte(bundleCRD), "README.md": []byte("no object")}
	b, err := kickstart.ReadBundle(manifests, annotations("  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n"), "")
	require.NoError(t, err)
	if b.Name != "cache-operator" || b.Namespace != "cache-system" || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "the bundle has 1 webhooks") {
		t.Errorf("got %+v", b)
	}
	result, err := kickstart.Make(b.Inputs, kickstart.Options{Name: b.Name, Namespace: b.Namespace})
	require.NoError(t, err)
	objects := objectsOf(t, load(t, result))
	want := []string{
		"crds/CustomResourceDefinition caches.cache.example.com", "deploy/Deployment cache-operator", "namespaces/Namespace cache-system",
		"rbac/ClusterRole cache-operator-cache-operator", "rbac/ClusterRoleBinding cache-operator-cache-operator",
		"rbac/Role cache-operator-cache-operator", "rbac/RoleBinding cache-operator-cache-operator", "rbac/ServiceAccount cache-operator",
	}
	require.Equal(t, want, slices.Sorted(maps.Keys(objects)))
	deployment := objects["deploy/Deployment cache-operator"]
	if dig(deployment, "metadata", "namespace") != "cache-system" || dig(deployment, "spec", "template", "metadata", "annotations", "olm.targetNamespaces") != "" {
		t.Errorf("got %v", deployment)
	}
}

func TestBundleRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		manifests, metadata loader.Files
		want                string
	}{
		"no name":        {loader.Files{"csv.yaml": []byte(csv)}, nil, "names no package"},
		"no CSV":         {loader.Files{"crd.yaml": []byte(bundleCRD)}, annotations(), "there is no ClusterServiceVersion in /manifests"},
		"two CSVs":       {loader.Files{"a.yaml": []byte(csv), "b.yaml": []byte(csv)}, annotations(), "two objects of the kind ClusterServiceVersion"},
		"more in a file": {loader.Files{"a.yaml": []byte(csv + "---\n" + bundleCRD)}, annotations(), "other objects in addition to"},
		"other format":   {loader.Files{"csv.yaml": []byte(csv)}, annotations("  operators.operatorframework.io.bundle.mediatype.v1: helm\n"), `has the format "helm"`},
		"other strategy": {loader.Files{"csv.yaml": []byte(strings.Replace(csv, "strategy: deployment", "strategy: other", 1))}, annotations(), `install strategy "other"`},
		"no spec":        {loader.Files{"csv.yaml": []byte(csv[:strings.Index(csv, "        label:")])}, annotations(), `the deployment "cache-operator" of the ClusterServiceVersion has no spec`},
		"broken":         {loader.Files{"csv.yaml": []byte("a: [")}, annotations(), "Invalid YAML in manifests/csv.yaml"},
	} {
		if _, err := kickstart.ReadBundle(tc.manifests, tc.metadata, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	own, err := kickstart.ReadBundle(loader.Files{"csv.yaml": []byte(strings.Replace(csv, "{type: AllNamespaces, supported: true}", "{type: AllNamespaces, supported: false}", 1))}, annotations(), "mine")
	if err != nil || own.Namespace != "mine" || !slices.ContainsFunc(own.Notes, func(n string) bool { return strings.HasPrefix(n, "the operator does not support all namespaces") }) {
		t.Errorf("%+v, %v", own, err)
	}
}

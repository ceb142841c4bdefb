package docs_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/e2e/harness"
)

// standInVariable makes this program stand in the place of Helm.
const standInVariable = "LOCKSTEP_STAND_IN_FOR_HELM"

// standIn makes the writes of Helm 4 for the commands of the guide: server-side applies of objects
// by the field manager helm, with Helm's label and annotations, and the record of a release. It
// does not support template functions, hooks or history.
type standIn struct {
	client.Client
	name, namespace, chart         string
	takes, forces, createNamespace bool
	values, set                    string
}

func runStandIn(args []string) int {
	if err := (&standIn{}).run(context.Background(), args); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

func (h *standIn) run(ctx context.Context, args []string) error {
	command, rest := args[0], args[1:]
	if command == "get" {
		command, rest = "get "+rest[0], rest[1:]
	}
	if err := h.flags(rest); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	if h.Client, err = client.New(config, client.Options{}); err != nil {
		return err
	}
	switch command {
	case "upgrade":
		return h.install(ctx)
	case "template":
		text, err := h.render()
		fmt.Print(text)
		return err
	case "get manifest":
		text, err := h.manifest(ctx)
		fmt.Print(text)
		return err
	case "get values":
		fmt.Println("null")
		return nil
	case "uninstall":
		return h.uninstall(ctx)
	}
	return fmt.Errorf("unknown command %q", command)
}

func (h *standIn) flags(args []string) error {
	var names []string
	for i := 0; i < len(args); i++ {
		value := func() string { i++; return args[i] }
		switch args[i] {
		case "--install":
		case "--create-namespace":
			h.createNamespace = true
		case "--take-ownership":
			h.takes = true
		case "--force-conflicts":
			h.forces = true
		case "-n":
			h.namespace = value()
		case "-o":
			value()
		case "-f":
			h.values = value()
		case "--set":
			h.set = value()
		default:
			if strings.HasPrefix(args[i], "-") {
				return fmt.Errorf("unknown flag: %s", args[i])
			}
			names = append(names, args[i])
		}
	}
	if len(names) == 0 || h.namespace == "" {
		return errors.New("a name or namespace is missing")
	}
	h.name, h.chart = names[0], strings.Join(names[1:], "")
	return nil
}

// render renders the templates of the chart.
func (h *standIn) render() (string, error) {
	chart, values := map[string]any{}, map[string]any{}
	for file, into := range map[string]*map[string]any{filepath.Join(h.chart, "Chart.yaml"): &chart, filepath.Join(h.chart, "values.yaml"): &values} {
		data, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(data, into)
		}
		if err != nil {
			return "", err
		}
	}
	if key, value, ok := strings.Cut(h.set, "="); ok {
		values[key] = value
	}
	templates, err := filepath.Glob(filepath.Join(h.chart, "templates", "*.yaml"))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for _, file := range templates {
		t, err := template.ParseFiles(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "---\n# Source: %s\n", file)
		err = t.Execute(&out, map[string]any{
			"Values": values, "Release": map[string]any{"Name": h.name, "Namespace": h.namespace, "Service": "Helm"},
			"Chart": map[string]any{"Version": chart["version"], "AppVersion": chart["appVersion"]},
		})
		if err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// objects returns the objects of a manifest in Helm's install order.
func (h *standIn) objects(manifest string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
	order := []string{"Namespace", "ServiceAccount", "ConfigMap", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "RoleBinding", "Service"}
	place := func(u *unstructured.Unstructured) int {
		if i := slices.Index(order, u.GetKind()); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return place(a) - place(b) })
	for _, u := range all {
		mapping, err := h.RESTMapper().RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			return nil, err
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			u.SetNamespace(cmp.Or(u.GetNamespace(), h.namespace))
		}
	}
	return all, nil
}

func (h *standIn) install(ctx context.Context) error {
	if h.createNamespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace, Labels: map[string]string{"name": h.namespace}}}
		if err := h.Create(ctx, ns, client.FieldOwner("helm")); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	definitions, err := filepath.Glob(filepath.Join(h.chart, "crds", "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range definitions {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &u.Object); err != nil {
			return err
		}
		if err := h.Create(ctx, u, client.FieldOwner("helm")); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	manifest, err := h.render()
	if err != nil {
		return err
	}
	all, err := h.objects(manifest)
	if err != nil {
		return err
	}
	for _, u := range all {
		if err := h.apply(ctx, u); err != nil {
			return fmt.Errorf("conflict occurred while applying object %s/%s: %w", u.GetNamespace(), u.GetName(), err)
		}
	}
	fmt.Printf("Release %q does not exist. Installing it now.\nNAME: %s\nNAMESPACE: %s\nSTATUS: deployed\n", h.name, h.name, h.namespace)
	return h.Create(ctx, harness.HelmRecord(h.namespace, h.name, 1, "deployed", manifest))
}

func (h *standIn) apply(ctx context.Context, u *unstructured.Unstructured) error {
	live := u.DeepCopy()
	err := h.Get(ctx, client.ObjectKeyFromObject(u), live)
	if err == nil && !h.takes && live.GetAnnotations()["meta.helm.sh/release-name"] != h.name {
		return errors.New("invalid ownership metadata")
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = h.name, h.namespace
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	options := []client.ApplyOption{client.FieldOwner("helm")}
	if h.forces {
		options = append(options, client.ForceOwnership)
	}
	// Admission might not know a namespace that was only just created.
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, harness.Patience, true, func(ctx context.Context) (bool, error) {
		err := h.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), options...)
		return err == nil || !apierrors.IsNotFound(err), err
	})
}

// record reads the only revision.
func (h *standIn) record(ctx context.Context) (*corev1.Secret, error) {
	secret := harness.HelmRecord(h.namespace, h.name, 1, "deployed", "")
	if err := h.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return nil, fmt.Errorf("uninstall: Release not loaded: %s: release: not found", h.name)
	}
	return secret, nil
}

func (h *standIn) manifest(ctx context.Context) (string, error) {
	secret, err := h.record(ctx)
	if err != nil {
		return "", err
	}
	return harness.HelmManifest(secret)
}

func (h *standIn) uninstall(ctx context.Context) error {
	manifest, err := h.manifest(ctx)
	if err != nil {
		return err
	}
	all, err := h.objects(manifest)
	if err != nil {
		return err
	}
	for _, u := range all {
		if err := client.IgnoreNotFound(h.Delete(ctx, u)); err != nil {
			return err
		}
	}
	return h.Delete(ctx, harness.HelmRecord(h.namespace, h.name, 1, "deployed", ""))
}

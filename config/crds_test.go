package config_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/test/require"
)

// kind is Package Operator's form of a kind, as its users see it.
type kind struct {
	scope      string
	plural     string
	shortNames string
	noStatus   bool
	columns    []string // name type path, then "wide" where priority is 1
}

func condition(name string) string { return name + " string " + conditionPath(name) }

func conditionPath(name string) string {
	return `.status.conditions[?(@.type=="` + name + `")].status`
}

const age = "Age date .metadata.creationTimestamp"

var packageColumns = []string{
	condition("Available"), condition("Progressing"), condition("Unpacked"), condition("Invalid"),
	"Revision string .status.revision",
	"Package string .status.resolved.catalogName", "Version string .status.currentVersion", // these are our own
	`State string .status.conditions[?(@.type=="Ready")].reason`, "Image string .status.currentImage wide", age,
}

var setColumns = []string{
	condition("Available"), condition("Paused"),
	condition("Archived") + " wide", condition("Succeeded") + " wide", condition("InTransition") + " wide",
	`Waiting string .status.conditions[?(@.type=="AwaitingActivation")].status wide`, "Revision string .spec.revision", age,
}

var phaseColumns = []string{condition("Available"), condition("Paused"), "Revision string .spec.revision", age}

var templateColumns = []string{"Invalid string " + conditionPath("package-operator.run/Invalid")}

var repositoryColumns = []string{
	condition("Ready"), "Packages integer .status.packages", "Versions integer .status.versions",
	"Revision string .status.artifact.revision wide", age,
}

var availableColumns = []string{"Package string .spec.packageName", "Description string .spec.display.shortDescription", age}

// kinds are the thirteen kinds of Package Operator, their short names and columns, with the
// corrections: ObjectSlice has its short names, and the revision of a phase is read from its
// right path.
var kinds = map[string]kind{
	"Package":        {"Namespaced", "packages", "pkg", false, packageColumns},
	"ClusterPackage": {"Cluster", "clusterpackages", "clpkg", false, packageColumns},
	"ObjectDeployment": {"Namespaced", "objectdeployments", "objdeploy od", false, []string{
		condition("Available"), condition("Progressing"), condition("Paused"),
		"Revision string .status.revision", "Version string .status.currentVersion", "Image string .status.currentImage wide", age,
	}},
	"ClusterObjectDeployment": {"Cluster", "clusterobjectdeployments", "clobjdeploy cod", false, []string{
		condition("Available"), "Revision string .status.revision", "Version string .status.currentVersion", "Image string .status.currentImage wide", condition("Progressing"),
		condition("Paused"), age,
	}},
	"ObjectSet":                {"Namespaced", "objectsets", "objset os", false, setColumns},
	"ClusterObjectSet":         {"Cluster", "clusterobjectsets", "clobjset cos", false, setColumns},
	"ObjectSetPhase":           {"Namespaced", "objectsetphases", "objsetphase osp", false, phaseColumns},
	"ClusterObjectSetPhase":    {"Cluster", "clusterobjectsetphases", "clobjsetphase cosp", false, phaseColumns},
	"ObjectSlice":              {"Namespaced", "objectslices", "objslice osl", true, []string{age}},
	"ClusterObjectSlice":       {"Cluster", "clusterobjectslices", "clobjslice cosl", true, []string{age}},
	"ObjectTemplate":           {"Namespaced", "objecttemplates", "objtmpl ot", false, templateColumns},
	"ClusterObjectTemplate":    {"Cluster", "clusterobjecttemplates", "clobjtmpl cot", false, templateColumns},
	"PackageRepository":        {"Namespaced", "packagerepositories", "pkgrepo", false, repositoryColumns},
	"ClusterPackageRepository": {"Cluster", "clusterpackagerepositories", "clpkgrepo", false, repositoryColumns},
	"AvailablePackage":         {"Namespaced", "availablepackages", "avpkg", true, availableColumns},
	"ClusterAvailablePackage":  {"Cluster", "clusteravailablepackages", "clavpkg", true, availableColumns},
	"HostedClusterPackage": {"Cluster", "hostedclusterpackages", "hcpkg", false, []string{
		condition("Available"), condition("Progressing"), condition("HasPausedPackage"),
		"ObservedGeneration string .status.observedGeneration",
		"Image string .spec.template.spec.image wide", age,
	}},
	"ImageConfig": {"Cluster", "imageconfigs", "imgcfg", false, []string{
		condition("Ready"), "Reason string .status.conditions[?(@.type==\"Ready\")].reason", "Mode string .spec.verification.mode",
		"Rewrite string .spec.rewrite.prefix wide", age,
	}},
}

func TestCRDsServeTheKinds(t *testing.T) {
	t.Parallel()
	crds := loadCRDs(t)
	if len(crds) != len(kinds) {
		t.Errorf("there are %d CRDs, want %d", len(crds), len(kinds))
	}
	for name, want := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd, ok := crds[name]
			if !ok {
				t.Fatalf("no CRD of kind %s", name)
			}
			require.Equal(t, describe(want, name), crd.Spec.Names, "names")
			require.Equal(t, want.scope, string(crd.Spec.Scope), "scope")
			if len(crd.Spec.Versions) != 1 {
				t.Fatalf("there are %d versions, want 1", len(crd.Spec.Versions))
			}
			version := crd.Spec.Versions[0]
			if version.Name != "v1alpha1" || !version.Served || !version.Storage {
				t.Errorf("version %s served %t storage %t, want v1alpha1 served and stored",
					version.Name, version.Served, version.Storage)
			}
			require.Equal(t, want.columns, columnsOf(version), "printer columns")
			hasStatus := version.Subresources != nil && version.Subresources.Status != nil
			if hasStatus == want.noStatus {
				t.Errorf("status subresource: %t, want %t", hasStatus, !want.noStatus)
			}
		})
	}
}

func describe(want kind, name string) apiextensionsv1.CustomResourceDefinitionNames {
	return apiextensionsv1.CustomResourceDefinitionNames{
		Kind: name, ListKind: name + "List", Plural: want.plural, Singular: strings.ToLower(name),
		ShortNames: strings.Fields(want.shortNames), Categories: []string{"lockstep"},
	}
}

func columnsOf(version apiextensionsv1.CustomResourceDefinitionVersion) []string {
	columns := make([]string, 0, len(version.AdditionalPrinterColumns))
	for _, column := range version.AdditionalPrinterColumns {
		text := column.Name + " " + column.Type + " " + column.JSONPath
		if column.Priority == 1 {
			text += " wide"
		}
		columns = append(columns, text)
	}
	return columns
}

func TestCRDsAreValid(t *testing.T) {
	t.Parallel()
	for name, crd := range loadCRDs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defaulted := crd.DeepCopy()
			apiextensionsv1.SetDefaults_CustomResourceDefinition(defaulted)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)
			internal := &apiextensions.CustomResourceDefinition{}
			err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
				defaulted, internal, nil)
			require.NoError(t, err)
			internal.Status.StoredVersions = []string{"v1alpha1"}
			// Structural schemas, defaults, and that every CEL rule compiles and is
			// within its cost are all part of this.
			for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
				t.Error(err)
			}
		})
	}
}

func loadCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	objects, err := config.Objects(config.FolderCRDs)
	require.NoError(t, err)
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, object := range objects {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd))
		crds[crd.Spec.Names.Kind] = crd
	}
	return crds
}

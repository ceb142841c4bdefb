package bundle

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/test/require"
)

// The output of load can be applied, and redirects each image to the same place as the flag.
func TestImageConfigs(t *testing.T) {
	t.Parallel()
	overrides := registry.Overrides{
		{From: "localhost:5000/", To: "mirror.example.com/packages/localhost-5000/"},
		{From: "registry.example.com/", To: "mirror.example.com/packages/registry.example.com/"},
	}
	var policies []imagepolicy.Policy
	for text := range strings.SplitSeq(imageConfigs(overrides), "---\n") {
		config := corev1alpha1.ImageConfig{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &config))
		if problems := validation.IsDNS1123Subdomain(config.Name); len(problems) > 0 || config.Kind != "ImageConfig" {
			t.Errorf("%s %s: %v", config.Kind, config.Name, problems)
		}
		policies = append(policies, imagepolicy.Policy{Name: config.Name, Prefixes: []string{config.Spec.MatchImages[0].Prefix}, Rewrite: config.Spec.Rewrite.Prefix})
	}
	set := imagepolicy.NewSet(policies, false, time.Time{})
	for _, image := range []string{"localhost:5000/team/web:v1", "registry.example.com/a/b@sha256:" + strings.Repeat("0", 64)} {
		if got := set.Decide(image, imagepolicy.Package); !got.Rewritten || got.Pull != overrides.Apply(image) {
			t.Errorf("%s is read from %s, by the flag from %s", image, got.Pull, overrides.Apply(image))
		}
	}
}

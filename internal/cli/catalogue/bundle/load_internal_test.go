package bundle

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/test/require"
)

// The output of load can be applied, and redirects each image to its place.
func TestImageConfigs(t *testing.T) {
	t.Parallel()
	images := []v1.Descriptor{}
	for _, ref := range []string{"localhost:5000/team/web:v1", "registry.example.com/a/b@sha256:" + strings.Repeat("0", 64), "web:v1", "docker.io/acme/web:v1"} {
		images = append(images, v1.Descriptor{Annotations: map[string]string{refName: ref}})
	}
	targets, mirrors, err := place(images, "mirror.example.com/packages")
	require.NoError(t, err)
	var policies []imagepolicy.Policy
	for text := range strings.SplitSeq(imageConfigs(mirrors), "---\n") {
		config := corev1alpha1.ImageConfig{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &config))
		if problems := validation.IsDNS1123Subdomain(config.Name); len(problems) > 0 || config.Kind != "ImageConfig" {
			t.Errorf("%s %s: %v", config.Kind, config.Name, problems)
		}
		policies = append(policies, imagepolicy.Policy{Name: config.Name, Prefixes: []string{config.Spec.MatchImages[0].Prefix}, Rewrite: config.Spec.Rewrite.Prefix})
	}
	set := imagepolicy.NewSet(policies, false, time.Time{})
	for i, image := range images {
		if got := set.Decide(image.Annotations[refName], imagepolicy.Package); !got.Rewritten || got.Pull != targets[i] {
			t.Errorf("%s is read from %s, and was pushed to %s", image.Annotations[refName], got.Pull, targets[i])
		}
	}
}

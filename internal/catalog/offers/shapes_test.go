package offers_test

import (
	"fmt"
	"os"
	"testing"

	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/require"
)

// Of a repository in the shape of real ones every version is listed; those that no tool has to render can be installed, and
// the others say whole what they ask for and what to do.
func TestShapesOfRealRepositories(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../repository/testdata/shapes.yaml")
	require.NoError(t, err)
	content, err := repository.Read(map[string][]byte{"shapes.yaml": data})
	if err != nil || len(content.Problems) > 0 {
		t.Fatal(err, content.Problems)
	}
	const remedy = ", which packages do not have here: render it with the tools of kapp-controller, and make a package of the objects by kubectl package kickstart"
	want := []string{
		"bin.tools.example.com 1.0.0: ",
		"bin.tools.example.com 1.1.0: , unchecked",
		"certs.tools.example.com 0.1.0: , unchecked",
		"certs.tools.example.com 0.2.0: it asks for template.spec.fetch[0].helmChart, template.spec.template[0].helmTemplate, template.spec.template[1].ytt" + remedy + ", unchecked",
		"shop.tools.example.com 1.0.0: it asks for template.spec.template[0].ytt" + remedy,
		"shop.tools.example.com 1.1.0: it asks for template.spec.template[0].ytt, template.spec.deploy[0].kapp.rawOptions" + remedy + ", unchecked",
	}
	var got []string
	for _, p := range content.Packages {
		for _, v := range p.Versions {
			text := fmt.Sprintf("%s %s: %s", p.Name, v.Version, offers.Offered{Version: v}.Candidate().NotInstallable)
			if v.ConfigUnchecked != "" {
				text += ", unchecked"
			}
			got = append(got, text)
		}
	}
	require.Equal(t, want, got)
}

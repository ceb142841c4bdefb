package offers_test

import (
	"fmt"
	"os"
	"testing"

	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/test/require"
)

// Every version of a repository in a realistic shape is listed. Versions that need no rendering
// tool can be installed; the others state which tools they require, and a remedy.
func TestShapesOfRealRepositories(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../repository/testdata/shapes.yaml")
	require.NoError(t, err)
	content, err := repository.Read(map[string][]byte{"shapes.yaml": data})
	if err != nil || len(content.Problems) > 0 {
		t.Fatal(err, content.Problems)
	}

	const remedy = ", which packages do not support here: render it with the tools of kapp-controller, and make a package of the objects with kubectl package kickstart"
	want := []string{
		"bin.tools.example.com 1.0.0: ",
		"bin.tools.example.com 1.1.0: ",
		"certs.tools.example.com 0.1.0: ",
		"certs.tools.example.com 0.2.0: it requires template.spec.fetch[0].helmChart, template.spec.template[0].helmTemplate, template.spec.template[1].ytt" + remedy + "",
		"shop.tools.example.com 1.0.0: it requires template.spec.template[0].ytt" + remedy,
		"shop.tools.example.com 1.1.0: it requires template.spec.template[0].ytt, template.spec.deploy[0].kapp.rawOptions" + remedy + "",
	}

	var got []string
	for _, p := range content.Packages {
		for _, v := range p.Versions {
			text := fmt.Sprintf("%s %s: %s", p.Name, v.Version, offers.Offered{Version: v}.Candidate().NotInstallable)
			got = append(got, text)
		}
	}

	require.Equal(t, want, got)
}

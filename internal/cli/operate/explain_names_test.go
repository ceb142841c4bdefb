package operate

import (
	"os"
	"testing"
)

func TestInstalledName(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("web", 0o700); err != nil {
		t.Fatal(err)
	}
	if n, is := installedName("web"); !is || n.Name != "web" {
		t.Error("a folder that is no package hides one that is installed")
	}
}

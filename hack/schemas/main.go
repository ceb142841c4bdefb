package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "`file` to write, .json.gz")
	flag.Parse()
	if err := run(*out); err != nil {
		log.Fatalf("Error: %v", err)
	}
}

func run(out string) error {
	if out == "" {
		return errors.New("--out is missing")
	}

	dir, version, err := module("k8s.io/kubernetes")
	if err != nil {
		return err
	}

	schemas, err := readSchemas(filepath.Join(dir, "api", "openapi-spec", "v3"))
	if err != nil {
		return err
	}

	enums, err := readEnums(filepath.Join(dir, "pkg", "generated", "openapi", "zz_generated.openapi.go"))
	if err != nil {
		return err
	}
	if err := addEnums(schemas, enums); err != nil {
		return err
	}

	text, err := json.Marshal(map[string]any{"version": version, "schemas": schemas})
	if err != nil {
		return err
	}

	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}

	return os.WriteFile(out, packed.Bytes(), 0o644)
}

// module returns the folder and version of a module that the sandbox uses.
func module(path string) (dir, version string, err error) {
	if err := command("mod", "download", path).Run(); err != nil {
		return "", "", fmt.Errorf("download %s: %w", path, err)
	}
	text, err := command("list", "-m", "-f", "{{.Dir}}\n{{.Version}}", path).Output()
	if err != nil {
		return "", "", fmt.Errorf("find %s: %w", path, err)
	}
	dir, version, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	if dir == "" || version == "" {
		return "", "", fmt.Errorf("the module %s is not there", path)
	}
	return dir, version, nil
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command("go", append([]string{"-C", "sandbox"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

package ui

import (
	"context"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// leadOn is a page that leads a browser to an address. It sends no Referer, because the address has
// the code.
var leadOn = template.Must(template.New("").Parse(`<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Lockstep</title>
<meta http-equiv="refresh" content="0; url={{.}}"><a href="{{.}}">Continue to the page</a>
`))

// openThroughFile opens an address in a browser through a file that only the user can read.
// Arguments of programs are visible to all users of a machine, so an address with a code must not
// be one. remove deletes the file.
func openThroughFile(ctx context.Context, address string, open func(context.Context, string) error) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "lockstep-") // with mode 0700
	if err != nil {
		return nil, fmt.Errorf("create a folder for the address: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	if err = writeAddress(file, address); err == nil {
		err = open(ctx, file)
	}

	if err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}

// writeAddress creates a file that leads to an address. An existing file is not opened, because
// another user could have created it.
func writeAddress(file, address string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the address: %w", err)
	}
	if err := leadOn.Execute(f, address); err != nil {
		_ = f.Close()
		return fmt.Errorf("write the address: %w", err)
	}
	return f.Close()
}

// openFile shows a file in the browser of the user.
func openFile(ctx context.Context, file string) error {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}

	path, err := exec.LookPath(program[0])
	if err != nil {
		return fmt.Errorf("%s is not installed", program[0])
	}
	cmd := exec.CommandContext(ctx, path, append(program[1:], file)...) // a file of our own
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", program[0], err)
	}

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", program[0], err)
		}
	case <-time.After(opening): // some do not exit until the browser does
	case <-ctx.Done():
	}

	return nil
}

// opening is the time within which a program reports that it cannot open a browser.
const opening = 3 * time.Second

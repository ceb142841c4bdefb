package archive

import (
	"archive/tar"
	"errors"
	"io"
)

// IsTar reports whether a stream, compressed or not, starts like a tar archive: with a header that
// has its checksum.
func IsTar(r io.Reader) (bool, error) {
	plain, closePlain, err := decompress(r)
	if err != nil {
		return false, err
	}

	defer closePlain()
	header, err := tar.NewReader(plain).Next()
	switch {
	case header != nil: // even if its path is insecure
		return true, nil
	// A file shorter than a header is not an archive, and not an error.
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return false, nil
	}

	return false, err
}

// ReadPlain reads up to limit bytes of a stream that is not an archive, compressed or not.
func ReadPlain(r io.Reader, limit int64) ([]byte, error) {
	plain, closePlain, err := decompress(r)
	if err != nil {
		return nil, err
	}
	defer closePlain()
	data, err := io.ReadAll(io.LimitReader(plain, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, limitError(0, "", "Split it, and serve a tar archive.", "the file has more than %d bytes", limit)
	}
	return data, err
}

package archive

import (
	"bytes"
	"io"
	"strconv"
)

// IsTar reports whether a stream, compressed or not, starts like a tar archive: with a header that
// has its checksum.
func IsTar(r io.Reader) (bool, error) {
	plain, closePlain, err := decompress(r)
	if err != nil {
		return false, err
	}

	defer closePlain()
	var block [512]byte
	if _, err := io.ReadFull(plain, block[:]); err != nil {
		// A file shorter than a header is not an archive, and not an error.
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return false, nil
		}
		return false, err
	}

	// The checksum is octal, and summed with eight spaces in its own place.
	want, err := strconv.ParseInt(string(bytes.Trim(block[148:156], " \x00")), 8, 64)
	if err != nil {
		return false, nil
	}

	var unsigned, signed int64
	for i, c := range block {
		if i >= 148 && i < 156 {
			c = ' '
		}
		unsigned, signed = unsigned+int64(c), signed+int64(int8(c))
	}

	// Some old writers of tar summed signed bytes.
	return want == unsigned || want == signed, nil
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

// Verifies a trail directory with Go's own transparency log, golang.org/x/mod/sumdb.
//
//	verify_tiles TRAIL [KEY [MINIMUM]]
//
// The checkpoint's signature is checked by sumdb/note, every hash tile and an inclusion proof of every entry by
// sumdb/tlog. KEY is a verifier key in sumdb's spelling; TRAIL/trail.pub when absent. MINIMUM is the
// minimum index of a pruned log (C2SP tlog-tiles, "Pruning"): bundles below it are not read. Prints the number of entries.
// Exit status: 0 everything holds, 3 something does not, 64 usage.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// tiles reads hash tiles where C2SP's tlog-tiles puts them: sumdb's path without the height, which is always 8.
type tiles struct{ folder string }

func (t tiles) Height() int { return 8 }

func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range wanted {
		data, err := os.ReadFile(filepath.Join(t.folder, "tile", strings.TrimPrefix(tile.Path(), "tile/8/")))
		if err != nil {
			return nil, err
		}
		if len(data) != tile.W*tlog.HashSize {
			return nil, fmt.Errorf("%s has %d bytes", tile.Path(), len(data))
		}
		all = append(all, data)
	}
	return all, nil
}

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify_tiles: error:", err)
		os.Exit(3)
	}
}

func expect(condition bool, format string, values ...any) {
	if !condition {
		check(fmt.Errorf(format, values...))
	}
}

// bundle reads the entries of one bundle: each a length of two bytes and the entry.
func bundle(folder string, number, width int64) [][]byte {
	tile := tlog.Tile{H: 8, L: 0, N: number, W: int(width)}
	path := filepath.Join(folder, "tile/entries", strings.TrimPrefix(tile.Path(), "tile/8/0/"))
	data, err := os.ReadFile(path)
	check(err)
	var entries [][]byte
	for i := int64(0); i < width; i++ {
		expect(len(data) >= 2, "%s ends in entry %d", path, i)
		length := int(binary.BigEndian.Uint16(data))
		expect(len(data) >= 2+length, "%s ends in entry %d", path, i)
		entries = append(entries, data[2:2+length])
		data = data[2+length:]
	}
	expect(len(data) == 0, "%s has %d bytes too many", path, len(data))
	return entries
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 4 {
		fmt.Fprintln(os.Stderr, "usage: verify_tiles TRAIL [KEY [MINIMUM]]")
		os.Exit(64)
	}
	folder := os.Args[1]
	var key string
	if len(os.Args) >= 3 {
		key = os.Args[2]
	} else {
		data, err := os.ReadFile(filepath.Join(folder, "trail.pub"))
		check(err)
		key = strings.TrimSpace(string(data))
	}
	minimum := int64(0)
	if len(os.Args) == 4 {
		parsed, err := strconv.ParseInt(os.Args[3], 10, 64)
		check(err)
		minimum = parsed
	}
	verifier, err := note.NewVerifier(key)
	check(err)
	message, err := os.ReadFile(filepath.Join(folder, "checkpoint"))
	check(err)
	opened, err := note.Open(message, note.VerifierList(verifier))
	check(err)
	lines := strings.Split(opened.Text, "\n")
	expect(len(lines) >= 4, "the checkpoint has %d lines", len(lines))
	expect(lines[0] == verifier.Name(), "the checkpoint is of `%s`, the key of `%s`", lines[0], verifier.Name())
	size, err := strconv.ParseInt(lines[1], 10, 64)
	check(err)
	root, err := base64.StdEncoding.DecodeString(lines[2])
	check(err)
	expect(len(root) == tlog.HashSize, "the root has %d bytes", len(root))
	tree := tlog.Tree{N: size}
	copy(tree.Hash[:], root)

	// Every hash it gives out has been proved against the tree's root.
	reader := tlog.TileHashReader(tree, tiles{folder})
	if size > 0 {
		whole, err := tlog.TreeHash(size, reader)
		check(err)
		expect(whole == tree.Hash, "the tiles have another root than the checkpoint")
	}
	for first := int64(0); first < size; first += 256 {
		width := size - first
		if width > 256 {
			width = 256
		}
		if first+width <= minimum {
			continue
		}
		for i, entry := range bundle(folder, first/256, width) {
			index := first + int64(i)
			proof, err := tlog.ProveRecord(size, index, reader)
			check(err)
			err = tlog.CheckRecord(proof, size, tree.Hash, index, tlog.RecordHash(entry))
			if err != nil {
				check(fmt.Errorf("entry %d: %v", index, err))
			}
		}
	}
	fmt.Println(size)
}

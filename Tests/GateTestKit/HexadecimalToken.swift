/// The token of an iPhone in a test: the bytes of some words in hexadecimal, so that a failure can be read.
package func apnsToken(_ words: String) -> String {
    words.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

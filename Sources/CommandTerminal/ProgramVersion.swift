/// The version of the package, which both programs say.
package enum ProgramVersion {
    package static let text = "0.1.0"
}

import Testing

/// What the test bundle starts with. SwiftPM makes one itself where there is none, and looks for XCTest's tests in the index first:
/// every test here is Swift Testing's, and without the look there need be no index (SG-0009).
@main struct TestBundle {
    static func main() async { await Testing.__swiftPMEntryPoint() as Never }
}

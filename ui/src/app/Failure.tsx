import { Component, type ErrorInfo, type ReactNode } from "react";
import { Failed } from "../parts/states";

/** Keeps a fault of one page from taking the others along. */
export class Failure extends Component<{ children: ReactNode }, { what: string | undefined }> {
  override state = { what: undefined };

  static getDerivedStateFromError(error: unknown): { what: string } {
    return { what: error instanceof Error ? error.message : String(error) };
  }

  override componentDidCatch(error: Error, info: ErrorInfo): void {
    console.error(error, info.componentStack);
  }

  override render(): ReactNode {
    if (this.state.what === undefined) return this.props.children;
    return <Failed what={this.state.what} again={() => this.setState({ what: undefined })} />;
  }
}
